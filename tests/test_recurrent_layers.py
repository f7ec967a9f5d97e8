"""Recurrent layers: for any dtypes of input, states and weights, torch's dtypes are among those inferred.

The table says nothing of the 16-bit dtype that autocast is not set to.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from amplint.annotate.rows import file_dtypes
from amplint.infer.lattice.scenarios import CONTROL
from amplint.source import Source

torch = pytest.importorskip("torch")

DTYPES = ("float32", "bfloat16", "float16")
REGIONS = {"": "torch.no_grad()", "bfloat16": 'torch.autocast("cpu", dtype=torch.bfloat16)'}
#: Constructor, shapes of the states, results by name.
LAYERS = {
    "nn.RNN(2, 3)": (((1, 1, 3),), "out, h"),
    "nn.GRU(2, 3)": (((1, 1, 3),), "out, h"),
    "nn.LSTM(2, 3)": (((1, 1, 3), (1, 1, 3)), "out, (h, c)"),
    "nn.LSTM(2, 3, proj_size=2)": (((1, 1, 2), (1, 1, 3)), "out, (h, c)"),
    "nn.LSTM(2, 3, 2, bidirectional=True, proj_size=2)": (((4, 1, 2), (4, 1, 3)), "out, (h, c)"),
}


class Program(NamedTuple):
    """A call as source whose last line names the results, and their dtypes in torch."""

    text: str
    truth: dict[str, str]


def programs(layer: str, region: str) -> list[Program]:
    """The calls that run."""
    shapes, results = LAYERS[layer]
    names = results.replace("(", "").replace(")", "").split(", ")
    found = []
    for weights, given, *states in itertools.product(DTYPES, DTYPES, *[(*DTYPES, None)] * len(shapes)):
        if None in states and any(states):
            continue
        made = [f"torch.ones({shape}, dtype=torch.{dtype})" for shape, dtype in zip(shapes, states, strict=True)]
        hidden = "None" if None in states else made[0] if len(made) == 1 else f"({', '.join(made)})"
        text = (
            f"import torch\nfrom torch import nn\n\nlayer = {layer}.to(torch.{weights})\n"
            f"with {REGIONS[region]}:\n"
            f"    {results} = layer(torch.ones(3, 1, 2, dtype=torch.{given}), {hidden})\n"
            f"[{', '.join(names)}]\n"
        )
        ran: dict[str, Any] = {}
        try:
            exec(compile(text, layer, "exec"), ran)
        except (RuntimeError, ValueError):
            continue
        found.append(Program(text, {name: str(ran[name].dtype)[6:] for name in names}))
    return found


def inferred(text: str) -> dict[str, tuple[str, ...] | None]:
    """The dtypes of what the last line names."""
    source = Source(Path("/recurrent/program.py"), text.encode())
    last = text.splitlines()[-1]
    return {
        last[row.span.start.column - 1 : row.span.end.column - 1]: row.dtypes[0]
        for row in file_dtypes(source, scenarios=(CONTROL,), device="cpu", torch_version=(2, 13)).rows
        if row.span.start.row == text.count("\n")
    }


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("layer", LAYERS)
def test_that_torch_agrees(layer: str, region: str) -> None:
    if region and "LSTM" in layer and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        pytest.skip("on this processor torch's CPU autocast leaves an LSTM in float32")
    found = programs(layer, region)
    assert found
    for program in found:
        said = inferred(program.text)
        for name, dtype in program.truth.items():
            unsure = said[name] is None and "torch.float16" in program.text
            assert unsure or dtype in (said[name] or ()), f"{program.text}{name} is {dtype}, inferred {said}"


@pytest.mark.parametrize("layer", LAYERS)
def test_that_one_dtype_throughout_is_known(layer: str) -> None:
    alike = [p for p in programs(layer, "") if len({*p.truth.values()}) == 1]
    assert alike
    for program in alike:
        assert inferred(program.text).items() >= {name: (dtype,) for name, dtype in program.truth.items()}.items()
