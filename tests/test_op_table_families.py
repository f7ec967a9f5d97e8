"""Dtypes in model code: what the inference says of programs of each family of operations is what torch gives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from op_families import FAMILIES, SCENARIOS, observed, program
from torch_process import with_torch

from amplint.annotate.rows import file_dtypes
from amplint.infer.lattice.scenarios import CONTROL, find_scenario
from amplint.source import Source

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def under_cuda() -> dict[str, dict[str, dict[str, str]]]:
    """What torch gives under CUDA's policy, from a process of its own."""
    script = Path(__file__).with_name("op_families.py")
    done = with_torch(script)
    found: dict[str, dict[str, dict[str, str]]] = json.loads(done.stdout)
    return found


def inferred(family: str, scenario: str, device: str) -> dict[str, tuple[str, ...] | None]:
    """The dtypes of the variables, read where the last line names them."""
    source, names = program(family)
    wanted = find_scenario(scenario)
    assert wanted is not None
    scenarios = (CONTROL,) if wanted is CONTROL else (CONTROL, wanted)
    path = Path(f"/families/{family}.py")
    rows = file_dtypes(Source(path, source.encode()), scenarios=scenarios, device=device, torch_version=(2, 13)).rows
    last = source.splitlines()[-1]
    found = {}
    for row in rows:
        if row.span.start.row == source.count("\n"):
            name = last[row.span.start.column - 1 : row.span.end.column - 1]
            if name in names:
                found[name] = row.dtypes[-1]
    return found


def differences(truth: dict[str, str], said: dict[str, tuple[str, ...] | None]) -> dict[str, str]:
    return {
        name: f"{dtype}, inferred {said.get(name, 'no tensor')}"
        for name, dtype in truth.items()
        if said.get(name, ()) != (dtype,)
    }


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("family", FAMILIES)
def test_on_the_cpu(family: str, scenario: str) -> None:
    assert not differences(observed(family, scenario, "cpu"), inferred(family, scenario, "cpu"))


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("family", FAMILIES)
def test_under_the_policy_of_cuda(family: str, scenario: str, under_cuda: dict[str, dict[str, dict[str, str]]]) -> None:
    assert not differences(under_cuda[family][scenario], inferred(family, scenario, "cuda"))
