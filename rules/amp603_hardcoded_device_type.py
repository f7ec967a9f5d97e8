"""AMP603: an autocast region for CUDA in code that runs on any device."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from amplint.claims.cuda_regions import cuda_regions, device_here
from amplint.claims.surroundings import Surroundings
from amplint.rule import ASSUMED, Applicability, Cause, Edit, Example, Location, Rule, Severity, Span, Suspect, doubts

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import FileFacts, Fix, Visit


class HardcodedDeviceType(Rule):
    """An autocast region names CUDA, in a function or class that otherwise takes the device from its tensors or caller.

    What it does
    ------------
    Reports `torch.autocast("cuda", ...)` and `torch.cuda.amp.autocast(...)` where the function or class around them
    reads `x.device`, or makes or moves tensors to a device that it is given, or where a test rules out only a device
    other than the CPU (`device != "mps"`). Silent under a test that speaks of CUDA or asks `torch.cuda`, unless its
    answer is that the device is another one, where `enabled` depends on the device, and where the region is switched
    off by a constant; only possible where `enabled`, or a test around the region, is another flag, which may be set for
    CUDA alone.

    Why it is bad
    -------------
    On another device the region does nothing: the same code runs in float32 on a CPU, on MPS and on XPU, at another
    speed and with other results. A region with `enabled=False` that is to protect a computation protects nothing there.

    How it shows
    ------------
    ```text
    UserWarning: User provided device_type of 'cuda', but CUDA is not available. Disabling
    ```
    or no sign at all.

    Example
    -------
    ```python
    def encode(model, x):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return model(x.to(model.device))
    ```
    Use instead:
    ```python
    def encode(model, x):
        with torch.autocast(model.device.type, dtype=torch.bfloat16):
            return model(x.to(model.device))
    ```

    Fix safety
    ----------
    Unsafe: on other devices the region is on then. Where the code takes its device from one place, which the region may
    read too, that device's type is passed; `torch.autocast` takes the place of `torch.cuda.amp.autocast`, and each
    device has its own default dtype. Which of several devices is meant, the author knows.
    """

    code: ClassVar[str] = "AMP603"
    name: ClassVar[str] = "hardcoded-device-type"
    severity: ClassVar[Severity] = Severity.WARNING
    of_weights = False
    tokens: ClassVar[tuple[str, ...]] = ("autocast",)
    claims_failure = False
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


def encode(model, x, device):
    with torch.autocast("cuda", dtype=torch.bfloat16):  # expect
        return model(x.to(device))


def reproduce():
    assert encode(nn.Linear(4, 4), torch.randn(2, 4), "cpu").dtype is torch.bfloat16
""",
            scenario="autocast-bf16",
            device="cpu",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch


def encode(model, x, device):
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        y = model(x.to(device))
    if x.is_cuda:
        with torch.autocast("cuda", dtype=torch.float16):
            y = model(y)
    with torch.autocast("cuda", dtype=torch.float16, enabled=device != "cpu"):
        return model(y)
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        scenarios = tuple(scenario.name for scenario in facts.scenarios if scenario.autocast)
        for call, evidence, switched in cuda_regions(facts) if scenarios else ():
            span = facts.span(call)
            cause = Cause(facts.path, facts.span(evidence), "the device is not fixed here")
            message = "this region is for CUDA alone and does nothing on the other devices that this code serves"
            device = device_here(call, Surroundings.of(facts.source.tree))
            suspect = Suspect(span, span, message, scenarios, ASSUMED, (cause,), data=device)
            yield suspect.doubted(doubts.SWITCHED_ON) if switched else suspect

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect, _on_that_device(node, suspect.data, visit))


def _on_that_device(node: cst.Call, device: str | None, visit: Visit) -> Fix | None:
    """Pass the type of a device; None where there is none, or arguments that the other class takes otherwise."""
    if device is None or any(argument.star for argument in node.args):
        return None
    torch, imports = visit.import_name("torch")
    kind = f"{torch}.device({device}).type"
    given = visit.argument(node, "device_type", 0)
    if given is not None and visit.code(given.value).strip("\"'") == "cuda":
        return visit.fix(Applicability.UNSAFE, "Open it for that device", *imports, visit.replace(given.value, kind))
    if any(argument.keyword is None for argument in node.args):
        return None
    place = visit.span(node.args[0]).start if node.args else visit.span(node).end
    if not node.args:
        place = Location(place.row, place.column - 1)
    added = Edit(Span(place, place), f"{kind}, " if node.args else kind)
    called = visit.replace(node.func, f"{torch}.autocast")
    return visit.fix(Applicability.UNSAFE, "Open it for that device", *imports, called, added)
