"""The hazard matrix: every expected failure is confirmed by a run, and nothing else is."""

from __future__ import annotations

import pytest
import torch
from hazard_matrix import HAZARDS, Hazard

from amplint.infer.lattice.scenarios import find_scenario
from amplint.verify.forked import run_forked
from amplint.verify.job import CLEAN, CONFIRMING, CPU_GAP

SCENARIOS = {"float16": find_scenario("autocast-fp16"), "bfloat16": find_scenario("autocast-bf16")}


def confirmed(hazard: Hazard, *, bad: bool) -> dict[str, bool]:
    """By autocast dtype: whether any mode confirms a failure. What the CPU alone cannot do is no confirmation."""

    def example() -> object:
        return hazard.module(bad), (torch.randn(2, 8, 16),), {}

    outcomes = run_forked(example, list(SCENARIOS.values()), "cuda", __file__, timeout=60)
    assert {o.kind for o in outcomes} <= {CLEAN, CPU_GAP, *CONFIRMING}, outcomes
    return {
        dtype: any(o.kind in CONFIRMING for o in outcomes if o.scenario == scenario.name)
        for dtype, scenario in SCENARIOS.items()
    }


@pytest.mark.parametrize("hazard", HAZARDS, ids=lambda hazard: hazard.name)
def test_the_hazard_is_confirmed_where_cuda_would_fail(hazard: Hazard) -> None:
    assert confirmed(hazard, bad=True) == {dtype: dtype in hazard.fails for dtype in SCENARIOS}


@pytest.mark.parametrize("hazard", HAZARDS, ids=lambda hazard: hazard.name)
def test_the_repaired_twin_is_not(hazard: Hazard) -> None:
    assert confirmed(hazard, bad=False) == dict.fromkeys(SCENARIOS, False)
