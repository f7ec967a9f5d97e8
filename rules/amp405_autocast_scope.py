"""AMP405: an autocast region that does not hold what it should, or that is never entered."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.autocast_queries import unasked_dtypes
from amplint.claims.float32_regions import float32_regions, is_float32_without
from amplint.claims.misused_regions import misused_regions
from amplint.claims.recomputation import recomputed
from amplint.claims.scaled_forwards import uncast_forwards
from amplint.claims.surroundings import Surroundings
from amplint.claims.suspect import likely_loss
from amplint.claims.training_steps import scaled_scenarios
from amplint.rule import FORCED, Applicability, Cause, Example, Rule, Severity, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import libcst as cst

    from amplint.rule import FileFacts, Fix, Visit

_RUN_AGAIN = "recomputes the forward pass without the autocast state of the first run: enter that state here"
_UNASKED = "the dtype that autocast would use says nothing while it is off: ask is_autocast_enabled() too"
_UNCAST = "runs the forward pass in float32, though its loss is scaled for float16: open an autocast region"


class AutocastScope(Rule):
    """Autocast is switched on where it has no effect, or is missing where the rest of the training counts on it.

    What it does
    ------------
    Reports

    - a dtype passed where autocast takes its device type or `enabled`: `torch.autocast(torch.bfloat16)` raises, and
      `torch.cuda.amp.autocast(torch.bfloat16)` means float16; a `torch.device` passed as the device type, which raises;
      `with autocast:` without a call, which raises;
    - `with a() and autocast(...)`, which enters one of the two, and an autocast region that is made and never entered;
    - a region in float32: said outright for a device other than CUDA, or by the dtype of a model, config or tensor
      without `enabled`, a test of that dtype, or a comparison with another, unless the caller switches the region on by
      an argument and passes that tensor, or all in it is computed from tensors cast to float32 there;
    - a forward pass outside any region in a file that scales the loss and has no autocast at all;
    - `get_autocast_dtype(...)` compared with a dtype in a function that never asks whether autocast is on: the answer
      is float16 on CUDA when it is off, too;
    - a backward that runs the forward function again, as activation checkpointing does, without the autocast state of
      the forward pass.

    Why it is bad
    -------------
    The model runs in float32, at twice the memory and half the speed, while its author measures "mixed precision"; or
    one half of the program runs in 16 bit and the other does not, and the two meet.

    How it shows
    ------------
    ```text
    ValueError: Expected `device_type` of type `str`, got: `<class 'torch.dtype'>`
    ```
    or no error: float32 activations, a recomputed forward pass that differs from the first one.

    Example
    -------
    ```python
    with no_sync() and torch.autocast(torch.bfloat16):
        loss = model(batch)
    ```
    Use instead:
    ```python
    with no_sync(), torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(batch)
    ```

    Fix safety
    ----------
    Unsafe: both contexts of `a and b` are entered, a dtype in the wrong place is passed as `dtype`, a device becomes
    its type, and a region in the dtype of a model is enabled for 16 bit alone; each changes in what the region
    computes. Where a region is missing, only its author knows where it should begin.
    """

    code: ClassVar[str] = "AMP405"
    name: ClassVar[str] = "autocast-scope"
    severity: ClassVar[Severity] = Severity.WARNING
    of_weights = False
    tokens: ClassVar[tuple[str, ...]] = ("autocast", "GradScaler", "enable_grad", "set_grad_enabled(True")
    context: ClassVar[tuple[str, ...]] = (
        "autocast(",
        "get_autocast",
        ".step(",
        "enable_grad",
        "set_grad_enabled(",
    )
    claims_failure = False
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import contextlib

import torch
from torch import nn


def step(model, x):
    with torch.autocast(torch.bfloat16):  # expect
        return model(x)


def step_both(model, x):
    with contextlib.nullcontext() and torch.autocast("cpu", dtype=torch.bfloat16):  # expect
        return model(x)


def step_on(model, x):
    device = next(model.parameters()).device
    with torch.autocast(device, dtype=torch.bfloat16):  # expect
        return model(x)


def step_in(model, x):
    with torch.autocast:  # expect
        return model(x)


def reproduce():
    assert step_both(nn.Linear(4, 4), torch.randn(2, 4)).dtype is torch.bfloat16
    assert step(nn.Linear(4, 4), torch.randn(2, 4)).dtype is torch.bfloat16
""",
            scenario="autocast-bf16",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import contextlib

import torch


def step_on(model, x, device: torch.device = "cuda"):
    where = torch.device(device)
    where = where.type
    with torch.autocast(where, dtype=torch.bfloat16):
        x = model(x)
    with torch.autocast(device, dtype=torch.bfloat16):
        return model(x)


def step(model, x, use_amp):
    region = torch.autocast("cuda", dtype=torch.bfloat16) if use_amp else contextlib.nullcontext()
    with torch.no_grad(), region:
        return model(x)
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        every = tuple(scenario.name for scenario in facts.scenarios if scenario.autocast)
        if not every:
            return
        around = Surroundings.of(facts.source.tree)
        for node, misuse in misused_regions(facts, around):
            severity, span = Severity.ERROR if misuse.raises else Severity.WARNING, facts.span(node)
            yield Suspect(span, span, misuse.message(node), every, FORCED, severity=severity, data=misuse.fix)
        for region, kept in recomputed(facts, around):
            cause = Cause(facts.path, facts.span(kept), "kept for the backward pass here")
            yield likely_loss(facts, region, _RUN_AGAIN, every, (cause,))
        for call in unasked_dtypes(facts, around):
            yield likely_loss(facts, call, _UNASKED, every)
        yield from _in_float32(facts, around, every)
        scaled = scaled_scenarios(facts)
        for call, scaling in uncast_forwards(facts) if scaled else ():
            cause = Cause(facts.path, facts.span(scaling), "the loss is scaled here")
            yield likely_loss(facts, call, _UNCAST, scaled, (cause,))

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        if suspect.data == "float32":
            visit.report(suspect, _enabled_in_16_bit(node, visit))
            return
        if suspect.data == "device":
            visit.report(suspect, _with_type(node, visit))
            return
        argument = visit.argument(node, 0)
        if suspect.data != "dtype" or argument is None or len(node.args) != 1:
            visit.report(suspect)
            return
        device = "" if visit.code(node.func).endswith("amp.autocast") else '"cuda", '
        edit = visit.replace(argument, f"{device}dtype={visit.code(argument.value)}")
        on_cuda = not device or any(r.name.startswith("torch.cuda.amp.") for r in visit.facts.references)
        shown = Applicability.UNSAFE if on_cuda else Applicability.DISPLAY
        visit.report(suspect, visit.fix(shown, "Pass the dtype as dtype", edit))

    def visit_BooleanOperation(self, node: cst.BooleanOperation, suspect: Suspect, visit: Visit) -> None:
        import libcst as cst

        item = visit.parent(node)
        if not isinstance(item, cst.WithItem) or item.asname is not None or not isinstance(node.operator, cst.And):
            visit.report(suspect)
            return
        if isinstance(node.left, cst.BooleanOperation):
            visit.report(suspect)
            return
        both = f"{visit.code(node.left)}, {visit.code(node.right)}"
        visit.report(suspect, visit.fix(Applicability.UNSAFE, "Enter both", visit.replace(node, both)))


def _in_float32(facts: FileFacts, around: Surroundings, scenarios: tuple[str, ...]) -> Iterator[Suspect]:
    for call, dtype, source in float32_regions(facts, around):
        if source is None:
            message = "only CUDA's autocast takes float32, elsewhere this warns and is off: pass enabled=False"
            if not is_float32_without(call, facts, around):
                yield likely_loss(facts, call, message, scenarios)
            continue
        wanted = ast.unparse(dtype)
        message = (
            f"where {wanted} is float32, only CUDA's autocast takes it, the others warn and are off: pass enabled="
        )
        cause = Cause(facts.path, facts.span(source), "float32 where the model is")
        yield likely_loss(facts, call, message, scenarios, (cause,), "float32")


def _enabled_in_16_bit(node: cst.Call, visit: Visit) -> Fix | None:
    """Enable a region where its dtype is one that autocast is for."""
    dtype = visit.argument(node, "dtype", 1)
    if dtype is None or visit.argument(node, "enabled") is not None:
        return None
    torch, imports = visit.import_name("torch")
    text = f"enabled={visit.code(dtype.value)} in ({torch}.float16, {torch}.bfloat16)"
    return visit.fix(Applicability.UNSAFE, "Enable it for 16 bit alone", visit.add_argument(node, text), *imports)


def _with_type(node: cst.Call, visit: Visit) -> Fix | None:
    """Pass a device's type instead of the device."""
    device = visit.argument(node, "device_type", 0)
    if device is None:
        return None
    edit = visit.replace(device.value, f"{visit.code(device.value)}.type")
    return visit.fix(Applicability.UNSAFE, "Pass its type", edit)
