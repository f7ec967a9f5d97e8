"""What CUDA's kernels do otherwise than the CPU's: the table beside the record of a GPU, the emulation beside both."""

from __future__ import annotations

import json
import lzma
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import amplint
from torch_process import with_torch

from amplint.infer.torch_model.layers import find_layer
from amplint.infer.torch_model.torch_ops import find_op

if TYPE_CHECKING:
    from amplint.infer.torch_model.torch_ops import Op

ROOT = Path(__file__).parent.parent
CUDA = json.loads((ROOT / "amplint" / "data" / "cuda.json").read_text())["ops"]
RECORD = ROOT / "benchmarks" / "gpu_tables" / "record.jsonl.xz"
DTYPES = {"float32", "float16", "bfloat16"}
NOT_STRICT = sorted(name for name in CUDA if CUDA[name].keys() & {"strict", "one_way"})


@cache
def recorded() -> dict[str, list[tuple[dict[str, str], Any]]]:
    """By callable: the operands' dtypes of its calls without autocast, all floating, and what each gave on the GPU."""
    found: dict[str, list[tuple[dict[str, str], Any]]] = {}
    with lzma.open(RECORD, "rt") as file:
        for line in map(json.loads, list(file)[1:]):
            if line["side"] != "gpu" or line["name"] not in CUDA:
                continue
            for _, region, operands, outcome in line["ran"]:
                dtypes = dict(one.split("=") for one in operands.split())
                if region == "plain" and dtypes and set(dtypes.values()) <= DTYPES:
                    found.setdefault(line["name"], []).append((dtypes, outcome))
    return found


def on_cuda(name: str) -> Op:
    layer = find_layer(name) if name.startswith("torch.nn.") and "functional" not in name else None
    op = layer.call if layer is not None else find_op(name)
    assert op is not None
    return op.on("cuda")


def refuses(op: Op, dtypes: dict[str, str]) -> bool:
    """Whether the entry says that operands of these dtypes are refused."""
    apart = any(len({dtypes[name] for name in group if name in dtypes}) > 1 for group in op.strict)
    narrow = any(dtypes.get(name, "float32") != "float32" for name in op.not_narrower)
    return apart or (narrow and dtypes.get("input") == "float32")


@pytest.mark.parametrize("name", NOT_STRICT)
def test_what_is_refused_was_refused_on_a_gpu(name: str) -> None:
    calls = [call for call in recorded()[name] if len(set(call[0].values())) > 1]
    said = [(dtypes, outcome) for dtypes, outcome in calls if refuses(on_cuda(name), dtypes)]
    assert said
    ran = [dtypes for dtypes, outcome in said if not str(outcome).startswith("!")]
    assert len(ran) <= 0.02 * len(said), ran[:5]
    refused = [dtypes for dtypes, outcome in calls if str(outcome).startswith("!")]
    assert len(said) - len(ran) >= 0.5 * len(refused), [d for d in refused if not refuses(on_cuda(name), d)][:5]


def emulated(lines: str) -> list[str]:
    """What lines print in a process whose CPU passes for cuda, an error as its text."""
    program = (
        "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n"
        "from amplint.emulation import emulated\n"
        "def say(make):\n    try:\n        print(make().dtype)\n"
        "    except RuntimeError as error:\n        print(error)\n"
        "x = torch.ones(1, 4, 4, 4)\n"
        "with emulated('cuda'):\n" + "".join(f"    {line}\n" for line in lines.splitlines())
    )
    done = with_torch(program)
    assert done.status == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


CALLS = {
    "F.layer_norm(x.half(), (4,), torch.ones(4), torch.ones(4))": "torch.float32",
    "nn.LayerNorm(4)(x.bfloat16())": "torch.float32",
    "F.group_norm(x.bfloat16(), 2, torch.ones(4), torch.ones(4))": "torch.float32",
    "F.conv_transpose2d(x, torch.ones(4, 4, 2, 2), torch.ones(4).half())": "torch.bfloat16",
}


def test_emulation_refuses_what_cuda_refuses_without_autocast() -> None:
    said = emulated("\n".join(f"say(lambda: {call})" for call in CALLS))
    assert said == [
        "expected scalar type Half but found Float",
        "expected scalar type BFloat16 but found Float",
        "expected scalar type BFloat16 but found Float",
        "expected scalar type Float but found Half",
    ]


def test_emulation_casts_them_under_autocast() -> None:
    region = "with torch.autocast('cuda', torch.bfloat16):\n"
    said = emulated(region + "\n".join(f"    say(lambda: {call})" for call in CALLS))
    assert said == list(CALLS.values())


def test_agreeing_operands_run() -> None:
    said = emulated("say(lambda: nn.LayerNorm(4).half()(x.half()))\nsay(lambda: F.layer_norm(x.half(), (4,)))")
    assert said == ["torch.float16", "torch.float16"]


@pytest.mark.parametrize("region", ["float16", "bfloat16"])
def test_recurrent_layers_compute_in_float16_whatever_autocast_is_set_to(region: str) -> None:
    layers = ("LSTM", "GRU", "RNN")
    lines = f"with torch.autocast('cuda', torch.{region}):\n" + "".join(
        f"    say(lambda: nn.{layer}(4, 4)(x[0])[0])\n" for layer in layers
    )
    assert emulated(lines) == ["torch.float16"] * 3
    rows = {name: outcomes for name, outcomes in under_autocast(region).items() if name in layers}
    assert {json.dumps(outcome) for outcomes in rows.values() for outcome in outcomes} <= {
        '["float16", "float16"]',
        '["float16", ["float16", "float16"]]',
    }
    assert len(rows) == 3


def under_autocast(region: str) -> dict[str, list[Any]]:
    """What layers gave on the GPU under autocast, with floating operands of at most float32."""
    found: dict[str, list[Any]] = {}
    with lzma.open(RECORD, "rt") as file:
        for line in map(json.loads, list(file)[1:]):
            if line["side"] != "gpu" or not line["name"].startswith("torch.nn."):
                continue
            for _, place, operands, outcome in line["ran"]:
                dtypes = {one.split("=")[1] for one in operands.split()}
                if place == region and dtypes and dtypes <= DTYPES and not str(outcome).startswith("!"):
                    found.setdefault(line["name"].removeprefix("torch.nn."), []).append(outcome)
    return found


MODULE = """
import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(8, 8)
        self.linear = nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8)

    def forward(self, x):
        h, _ = self.rnn(x)
        y = self.linear(x)
        z = F.layer_norm(y, (8,), self.norm.weight.float(), self.norm.bias.float())
        return h, y, z
"""


def dtypes_of(project: Path, scenario: str, device: str) -> str:
    (project / "block.py").write_text(MODULE)
    done = amplint("dtypes", "--scenario", scenario, "--device", device, "block.py")
    assert done.status == 0, done.stderr
    return done.stdout


def test_inference_follows_the_device(project: Path) -> None:
    assert "h: float16" in dtypes_of(project, "autocast-bf16", "cuda")
    assert "y: bfloat16" in dtypes_of(project, "autocast-bf16", "cuda")
    assert "h: float16" not in dtypes_of(project, "autocast-bf16", "cpu")
    assert "z: bfloat16" not in dtypes_of(project, "bf16", "cuda")
    assert "z: bfloat16" in dtypes_of(project, "bf16", "cpu")
