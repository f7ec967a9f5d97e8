"""For the tests of a library: run a module under every way of mixed precision, in three lines.

    from amplint.testing import assert_autocast_safe

    def test_block():
        assert_autocast_safe(Block(64), torch.randn(2, 16, 64))

Needs torch. CUDA's cast policy is put over the CPU's kernels in a forked process, so no GPU is needed and nothing of
this process changes. Where a process cannot be forked (a GPU is there and a backward pass has run), module and inputs
are pickled into a new one.
"""

from __future__ import annotations

import copy
import inspect
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amplint.frozen import dataclass
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS, DEVICES, Scenario, find_scenario, scenario_names
from amplint.verify.job import CLEAN, CONFIRMING, NO_REFERENCE, OTHER
from amplint.verify.quoted import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch
    from torch import nn

    from amplint.verify.job import Claim, Outcome

__all__ = ["assert_autocast_safe"]


def assert_autocast_safe(
    module: nn.Module | None = None,
    *inputs: Any,
    scenarios: Sequence[str] | None = None,
    device: str = "cuda",
    example: Callable[[], Any] | None = None,
    seed: int = 0,
    timeout: float = 120.0,
    **keywords: Any,
) -> None:
    """Raise AssertionError if the module fails, overflows or loses accuracy under a scenario of mixed precision.

    ``inputs`` and ``keywords`` are what the module is called with: tensors in float32. Every scenario runs in training
    and in eval mode with backward outside of autocast, and under no_grad; with a padding mask where the signature has
    one, and twice where there is a cache. Module and inputs are copied for each run, from a GPU to the CPU, and stay
    as they are.

    ``example`` takes the place of module and inputs: a function without parameters that returns ``(module, args,
    kwargs)``. Only with it can ``bf16-mixed-params`` run, which is about how a module is constructed.

    Raises ValueError for what cannot be run: an unknown scenario, a module that fails in float32 already, or one of
    which only a GPU can tell anything.
    RuntimeError where the run ends its process or takes longer than ``timeout`` seconds, or where this process can
    neither be forked nor the example be pickled.
    """
    __tracebackhide__ = True  # pytest shows the caller's line
    make = _maker(module, inputs, keywords, example)
    chosen = _scenarios(scenarios, rebuilds=example is not None)
    if device not in DEVICES:
        raise ValueError(f"unknown device {device!r}; known: {', '.join(DEVICES)}")
    from amplint.verify.forked import run_forked

    path = _source(example if module is None else type(module))
    outcomes = run_forked(make, chosen, device, path, timeout=timeout, seed=seed)
    unsafe = [outcome for outcome in outcomes if outcome.kind in CONFIRMING]
    if unsafe:
        codes = _Codes(chosen, device)
        lines = [_line(outcome, codes.of(outcome)) for outcome in unsafe]
        told = quoted(outcome.frames for outcome in unsafe)
        raise AssertionError("\n".join(["not safe in mixed precision:", *lines, *told]))
    broken = [outcome for outcome in outcomes if outcome.kind in (OTHER, NO_REFERENCE)]
    if broken or not any(outcome.kind == CLEAN for outcome in outcomes):
        raise ValueError("could not be run:\n" + "\n".join(_line(outcome, None) for outcome in broken or outcomes))


def _maker(
    module: nn.Module | None, inputs: tuple[Any, ...], keywords: dict[str, Any], example: Callable[[], Any] | None
) -> Callable[[], Any]:
    """What makes module, inputs and keywords anew on every call."""
    if (module is None) == (example is None):
        raise ValueError("give a module with its inputs, or example=")

    return example or _on_host(_Copies(module, inputs, keywords))


def _on_host(held: _Copies) -> _Copies:
    """Copies on the CPU of what lies on a GPU: no forked process can reach that."""
    from amplint.verify.tensors import held_by, tensors

    own = tensors((held.inputs, held.keywords))
    elsewhere = [tensor for tensor in (*held_by(held.module), *own) if tensor.device.type not in ("cpu", "meta")]
    copied = {id(tensor): _moved(tensor) for tensor in elsewhere}
    if not copied:
        return held
    return _Copies(*copy.deepcopy((held.module, held.inputs, held.keywords), copied))


def _moved(tensor: torch.Tensor) -> torch.Tensor:
    from torch import nn

    moved = tensor.detach().cpu()
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(moved, tensor.requires_grad)
    return moved.requires_grad_(tensor.requires_grad)


@dataclass(frozen=True)
class _Copies:
    """Module, inputs and keywords, anew on every call."""

    module: nn.Module | None
    inputs: tuple[Any, ...]
    keywords: dict[str, Any]

    def __call__(self) -> Any:
        from amplint.verify.tensors import replaced

        called_with = replaced((self.inputs, self.keywords), lambda tensor: tensor.detach(), objects=False)
        return copy.deepcopy((self.module, *called_with))


def _scenarios(names: Sequence[str] | None, *, rebuilds: bool) -> tuple[Scenario, ...]:
    if names is None:
        return tuple(s for s in DEFAULT_SCENARIOS if rebuilds or not s.keeps_explicit)
    chosen = []
    for name in names:
        scenario = find_scenario(name)
        if scenario is None:
            raise ValueError(f"unknown scenario {name!r}; known: {', '.join(scenario_names())}")
        if scenario.keeps_explicit and not rebuilds:
            raise ValueError(f"{name} is about how a module is constructed: pass example= instead of a module")
        chosen.append(scenario)
    return tuple(chosen)


def _source(value: Any) -> str:
    try:
        return inspect.getsourcefile(value) or ""
    except TypeError:
        return ""


class _Codes:
    """The rule that ``check`` names at the line of a failure, else the family of its error."""

    def __init__(self, scenarios: Sequence[Scenario], device: str) -> None:
        self._scenarios = tuple(scenario.name for scenario in scenarios)
        self._device = device
        self._claims: dict[str, tuple[Claim, ...]] = {}

    def of(self, outcome: Outcome) -> str | None:
        """Along the way of the failure, from where it happened outwards."""
        for filename, row in reversed(outcome.frames):
            if filename not in self._claims:
                self._claims[filename] = self._found(Path(filename))
            for claim in self._claims[filename]:
                if outcome.scenario in claim.scenarios and claim.covers(filename, row):
                    return claim.code
        return outcome.family

    def _found(self, path: Path) -> tuple[Claim, ...]:
        from amplint.engine import check_file
        from amplint.judging import judged_in
        from amplint.source import Source, SourceError
        from amplint.verify.targets import claims_of, outline

        options = judged_in(path.parent, scenario=self._scenarios, device=self._device).options
        options = replace(options, each_place=True)
        try:
            shape = outline(Source(path, path.read_bytes()))
        except (OSError, SourceError):
            return ()
        return claims_of(check_file(path, options).findings, shape)


def _line(outcome: Outcome, code: str | None) -> str:
    where = f" at {outcome.location[0]}:{outcome.location[1]}" if outcome.location else ""
    rule = f" [{code}]" if code else ""
    return f"  {outcome.scenario}, {outcome.mode}: {outcome.error}{where}{rule}"
