"""Scenarios: the ways of running in mixed precision that a program is judged under.

Which dtypes parameters, buffers and inputs have, and whether autocast is on, follows the table of the contract.
"""

from __future__ import annotations

from amplint.frozen import dataclass

DEVICES = ("cuda", "cpu", "mps", "xpu")
"""The cast policies that can be asked for."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One way of running. Dtypes are torch names without prefix.

    ``keeps_explicit``: what the code constructs with an explicit dtype keeps it when the model is made low precision.
    """

    name: str
    alias: str | None
    parameters: str
    buffers: str
    inputs: str
    autocast: str | None = None
    keeps_explicit: bool = False
    default: bool = True

    @property
    def since(self) -> tuple[int, int]:
        """The release of torch that first runs so on CUDA: 1.6 has autocast, 1.10 takes bfloat16 in it, and the first
        ``torch.cuda.is_bf16_supported``."""
        if "bfloat16" in (self.parameters, self.autocast):
            return (1, 10)
        return (1, 6) if self.autocast else (0, 0)


SCENARIOS = (
    Scenario("fp32", None, "float32", "float32", "float32", default=False),
    Scenario("autocast-fp16", "16-mixed", "float32", "float32", "float32", autocast="float16"),
    Scenario("autocast-bf16", "bf16-mixed", "float32", "float32", "float32", autocast="bfloat16"),
    Scenario("fp16", "16-true", "float16", "float16", "float16"),
    Scenario("bf16", "bf16-true", "bfloat16", "bfloat16", "bfloat16"),
    Scenario("bf16-mixed-params", None, "bfloat16", "bfloat16", "bfloat16", keeps_explicit=True),
    Scenario("fsdp-bf16", None, "bfloat16", "float32", "bfloat16", default=False),
)

CONTROL = SCENARIOS[0]
"""Full precision: a program is taken to run correctly there, so what fails there too is no precision hazard."""

DEFAULT_SCENARIOS = tuple(scenario for scenario in SCENARIOS if scenario.default)


def scenario_names() -> list[str]:
    """Every accepted spelling, names first."""
    return [s.name for s in SCENARIOS] + [s.alias for s in SCENARIOS if s.alias]


def find_scenario(name: str) -> Scenario | None:
    """The scenario of that name or alias."""
    return next((s for s in SCENARIOS if name in (s.name, s.alias)), None)
