"""What unpacking, starred tuples, lists and layers in between keep of a tensor: torch raises where that is said."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from test_inference_first_raise import told_in

from amplint.claims.conflicts import conflicts
from amplint.infer.entry.analysis import analyse
from amplint.infer.lattice.scenarios import CONTROL, DEFAULT_SCENARIOS
from amplint.infer.machine.named_axes import in_letters
from amplint.source import Source

HEADER = """\
from __future__ import annotations

from typing import Optional

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
"""


def scenarios(code: str) -> set[str]:
    """The scenarios in which something conflicts."""
    source = Source(Path("/project/module.py"), (HEADER + code).encode())
    facts = analyse(source, scenarios=(CONTROL, *DEFAULT_SCENARIOS), device="cuda", torch_version=(2, 13))
    return {scenario for conflict in conflicts(facts) if conflict.standing.told for scenario in conflict.scenarios}


def agrees(code: str, *inputs: torch.Tensor, raises: bool) -> None:
    """Torch raises with bfloat16 weights if that is said."""
    module: dict[str, Any] = {}
    exec(HEADER + code, module)
    module["Model"]()(*(i.float() if i.is_floating_point() else i for i in inputs))
    with pytest.raises((RuntimeError, ValueError)) if raises else nullcontext():
        module["Model"]().bfloat16()(*inputs)
    assert ("bf16" in scenarios(code)) is raises


@pytest.mark.parametrize(
    ("unpacked", "value", "raises"),
    [
        ("batch, width, dtype = *x.shape, x.dtype", "torch.zeros(batch, width, dtype=dtype)", False),
        ("batch, width, wide = *x.shape, x.float()", "wide", True),
        ("*_, width, dtype = *x.shape, x.dtype", "torch.zeros(width, dtype=dtype)", False),
        ("wide, *_ = x.float(), *x", "wide", True),
        ("wide, *rest = x.float(), *x", "rest[0]", False),
        ("*rest, wide = *x, x.float()", "wide", True),
        ("parts = [x, *x.shape]", "parts[0]", False),
        ("parts = [*x.shape] + [x.float()]", "parts[-1]", True),
        ("pairs = zip(*[(x, x.float())] * 2)\nnarrow, wide = pairs", "wide[0]", True),
        ("total = x.float().sum()", "total * x", False),
        ("totals = torch.stack([x.float().sum()] * 8)", "totals * x", True),
        ("total = x.float().sum().reshape(1)", "total * x", True),
    ],
)
def test_what_is_taken_apart(unpacked: str, value: str, raises: bool) -> None:
    body = "".join(f"        {line}\n" for line in (*unpacked.splitlines(), f"return self.linear({value})"))
    agrees(f"\n    def forward(self, x: torch.Tensor):\n{body}", torch.ones(2, 8, dtype=torch.bfloat16), raises=raises)


POOLED = """
    def pool(self, x: torch.Tensor, mask: {annotation}):
        weights = mask / mask.sum(dim=-1, keepdim=True)
        return self.linear(x * weights)

    def forward(self, x: torch.Tensor, mask):
        return self.pool(x, mask)
"""


@pytest.mark.parametrize(
    ("annotation", "dtype"),
    [
        ("torch.BoolTensor", torch.bool),
        ("Optional[torch.LongTensor]", torch.int64),
        ("'torch.IntTensor | None'", torch.int32),
        ("torch.Tensor", torch.bfloat16),
    ],
)
def test_an_annotation_knows_better_than_what_a_caller_is_taken_to_pass(annotation: str, dtype: torch.dtype) -> None:
    inputs = torch.ones(2, 8, dtype=torch.bfloat16), torch.ones(2, 8, dtype=dtype)
    agrees(POOLED.format(annotation=annotation), *inputs, raises=dtype is not torch.bfloat16)


@pytest.mark.parametrize(
    ("layer", "told"),
    [
        ("Rearrange('b n -> n b')", True),
        ("Reduce('b n -> b 1', 'mean')", True),
        ("Reduce('b n -> b 1', reduction='max')", True),
        ("Reduce('b n -> b 1', 'sum')", False),
    ],
)
def test_layers_of_einops_keep_the_dtype(layer: str, told: bool) -> None:
    code = f"""
        self.shaped = nn.Sequential(nn.Linear(8, 8), {layer})

    def forward(self, x: torch.Tensor):
        out = torch.zeros(8, 8)
        out[x > 0] = self.shaped(x)
        return out


from einops.layers.torch import Rearrange, Reduce
"""
    assert ("autocast-bf16" in scenarios(code)) is told


@pytest.mark.parametrize(("taken", "raises"), [("wide", True), ("narrow", False)])
def test_first_items_are_known_where_more_may_follow(taken: str, raises: bool) -> None:
    code = f"""
    def prepared(self, x, count):
        result = (x, x.float())
        if count is not None:
            result = result + (torch.tensor(count),)
        return result

    def forward(self, x: torch.Tensor):
        narrow, wide, count = self.prepared(x, [1, 2])
        return self.linear({taken})
"""
    agrees(code, torch.zeros(2, 8, dtype=torch.bfloat16), raises=raises)


PACKED = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.{kind}(8, 8, batch_first=True)
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor):
        packed = nn.utils.rnn.pack_padded_sequence({given}, [4, 2], batch_first=True)
        out, states = self.rnn(packed)
        padded, lengths = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
        return self.linear({taken})
"""


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize(
    ("given", "taken", "raises"),
    [
        ("x", "padded", False),
        ("x", "padded.float()", True),
        ("x", "out.data", False),
        ("x.float()", "padded", True),
        ("x", "torch.zeros(2, 8, dtype=lengths.dtype) + padded[0, 0]", False),
    ],
)
def test_packed_sequences_hold_a_tensor(kind: str, given: str, taken: str, raises: bool) -> None:
    agrees(
        PACKED.format(kind=kind, given=given, taken=taken), torch.zeros(2, 4, 8, dtype=torch.bfloat16), raises=raises
    )


@pytest.mark.parametrize(("kept", "certainty"), [("1 - padding", "likely"), ("(1 - padding).long()", "proven")])
def test_integers_that_an_annotation_promises_are_assumed(kept: str, certainty: str) -> None:
    code = f"""
    def counted(self, padding: torch.LongTensor):
        return ({kept}).sum(dim=1).clamp(min=1.0)

    def forward(self, x: torch.Tensor, padding: torch.LongTensor):
        return self.linear(x / self.counted(padding)[:, None])
"""
    source = Source(Path("/project/module.py"), (HEADER + code).encode())
    facts = analyse(source, scenarios=(CONTROL, *DEFAULT_SCENARIOS), device="cuda", torch_version=(2, 13))
    assert {str(conflict.standing.certainty.value) for conflict in conflicts(facts)} == {certainty}


RUN_OVER = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, words):
        h = torch.ones(4, 4, device=x.device)
        for _ in {over}:
            h = self.layer(x)
        return torch.matmul(self.layer.weight, h)
"""


@pytest.mark.parametrize(
    ("over", "words"), [("[*words, 1]", []), ("[len(w) for w in words] + [1]", []), ("words", ["any"])]
)
def test_a_list_is_run_over_once_at_least(over: str, words: list[str]) -> None:
    code = RUN_OVER.format(over=over)
    namespace: dict[str, Any] = {}
    exec(compile(code, "net.py", "exec"), namespace)
    net, x = namespace["Net"]().half(), torch.ones(4, 4).half()
    assert net(x, words).dtype is torch.float16
    assert told_in(code) == []


def test_annotated_lists_hold_what_is_added() -> None:
    code = """
    def forward(self, x: torch.Tensor):
        wide = torch.jit.annotate(list[torch.Tensor], [])
        wide += [x.float()]
        return self.linear(wide[0])
"""
    agrees(code, torch.ones(2, 8).bfloat16(), raises=True)


@pytest.mark.parametrize(
    ("equation", "raises"),
    [("b d_in, d_in -> b", True), ("... d, d -> ...", True), ("b d_in, n_in -> b d_in n_in", False)],
)
def test_sums_of_products_name_axes_by_words(equation: str, raises: bool) -> None:
    with pytest.raises(RuntimeError) if raises else nullcontext():
        torch.einsum(in_letters(equation), torch.ones(2, 8), torch.ones(8, dtype=torch.bfloat16))
    code = f"""
    def forward(self, x: torch.Tensor):
        return einsum(x.float(), self.linear.bias, "{equation}")


from einops import einsum
"""
    assert ("bf16" in scenarios(code)) is raises
