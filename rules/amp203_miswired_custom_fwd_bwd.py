"""AMP203: ``custom_fwd`` and ``custom_bwd`` put together in a way that raises, or that does not carry the state."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.caught import is_caught
from amplint.claims.custom_autograd import BACKWARD, FORWARD, SINCE, readable, role_of
from amplint.claims.decorator_makers import fixed_devices
from amplint.claims.decorator_wiring import Wiring, every_scenario
from amplint.rewriting.decorators import rewired
from amplint.rule import FORCED, Applicability, Cause, Edit, Example, Rule, Severity, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import libcst as cst

    from amplint.rule import FileFacts, Visit


class MiswiredCustomFwdBwd(Rule):
    """The pair `custom_fwd` and `custom_bwd` of an autograd Function is incomplete, swapped or given wrong arguments.

    What it does
    ------------
    Reports, in a `torch.autograd.Function`:

    - `custom_bwd` without `custom_fwd`, or on `forward`: raises, under autocast or not
    - `custom_fwd` without `custom_bwd`, or on `backward`: `backward` runs without autocast, as if undecorated
    - the pair on a Function with `setup_context`, where `forward` has no `ctx` to note the state on: `backward` raises
    - two device types that differ: the state of one device is noted and another device's is restored
    - `cast_inputs=torch.float16` or `torch.bfloat16`, which holds whatever dtype the program's autocast has

    in a file without Functions, which makes the decorators for other files: `functools.partial(torch.amp.custom_fwd,
    device_type="cuda")`, a device type that is written out for all of them;

    and anywhere: `torch.amp.custom_fwd` or `torch.amp.custom_bwd` without `device_type`, which raises where it is
    applied. The old names in `torch.cuda.amp` know their device and need none (AMP601 reports them as deprecated).

    A decorator without `device_type` is not reported where the file catches the error and goes on.

    The order of the decorator and `@staticmethod` is not reported: both orders work from Python 3.10 on.

    Why it is bad
    -------------
    `custom_fwd` notes on `ctx` whether autocast is on, and with which dtype; `custom_bwd` reads that note. Each without
    the other is useless or raises, and the error appears in `loss.backward()`, far from its cause, and names an
    attribute that no user code has ever set.

    `cast_inputs` with a fixed 16-bit dtype turns bfloat16 training, which needs no loss scaling, into float16 inside
    this Function: values beyond 65504 become inf. The other way round, bfloat16 leaves float16 training 8 bits of
    precision of 11. `cast_inputs=torch.float32` is the usual choice, and is not reported.

    How it shows
    ------------
    ```text
    AttributeError: 'FusedLinearBackward' object has no attribute '_fwd_used_autocast'
    TypeError: custom_fwd() missing 1 required keyword-only argument: 'device_type'
    RuntimeError: expected m1 and m2 to have the same dtype, but got: c10::BFloat16 != float
    ```
    or inf in the output.

    Example
    -------
    ```python
    class FusedLinear(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd
        def forward(ctx, x, weight): ...

        @staticmethod
        def backward(ctx, grad): ...
    ```
    Use instead:
    ```python
    class FusedLinear(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda")
        def forward(ctx, x, weight): ...

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(ctx, grad): ...
    ```

    Fix safety
    ----------
    Adding a missing `device_type` is safe: without it the class cannot be defined, so nothing ran before. Its value is
    that of the other decorator of the pair, else the device that is judged (`--device`).

    Adding the missing half, or putting each decorator where it belongs, is unsafe: `backward` then computes in another
    dtype. It is offered from torch 2.4 on, where the decorators are written by name and not hidden behind a name of the
    file. A Function with `setup_context` has no fix: give it a `forward(ctx, ...)` that saves its tensors itself, or
    cast by hand. Nor have device types that differ and a fixed `cast_inputs`: only the author knows what was meant.
    """

    code: ClassVar[str] = "AMP203"
    name: ClassVar[str] = "miswired-custom-fwd-bwd"
    severity: ClassVar[Severity] = Severity.ERROR
    tokens: ClassVar[tuple[str, ...]] = (FORWARD, BACKWARD)
    fix: ClassVar[Applicability | None] = Applicability.SAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch


class FusedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):  # expect
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight, grad.t() @ x


def reproduce():
    x = torch.randn(3, 4, requires_grad=True)
    weight = torch.randn(5, 4, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = FusedLinear.apply(x, weight).sum()
    loss.backward()
""",
            scenario="autocast-bf16",
            device="cpu",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch.amp import custom_bwd, custom_fwd


class FusedLinear(torch.autograd.Function):
    @custom_fwd(device_type="cuda", cast_inputs=torch.float32)
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @custom_bwd(device_type="cuda")
    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight, grad.t() @ x


@custom_fwd(device_type="cuda", cast_inputs=torch.float32)
def stable_norm(holder, x):
    return x.norm()


try:
    old_spelling = torch.amp.custom_fwd(cast_inputs=torch.float32)
except TypeError:
    old_spelling = torch.cuda.amp.custom_fwd(cast_inputs=torch.float32)  # amplint: ignore[AMP601]
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        wired = [
            Wiring(facts, function)
            for function in facts.autograd_functions
            if readable(function) and (function.forward is not None or function.backward is not None)
        ]
        yield from _without_device(facts, wired)
        yield from fixed_devices(facts)
        for wiring in wired:
            if wiring.forward or wiring.backward:
                yield from wiring.problems()

    def visit_FunctionDef(self, node: cst.FunctionDef, suspect: Suspect, visit: Visit) -> None:
        edits = rewired(suspect.data, visit) if isinstance(suspect.data, Wiring) else []
        message = "Put custom_fwd on forward and custom_bwd on backward"
        visit.report(suspect, visit.fix(Applicability.UNSAFE, message, *edits) if edits else None)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        import libcst as cst

        by_position = [argument for argument in node.args if argument.keyword is None and argument.star != "**"]
        if suspect.data is None or len(by_position) > 1:
            visit.report(suspect)
            return
        first = visit.argument(node, 0)
        if first is not None and isinstance(first.value, cst.SimpleString):
            self._report_device(suspect, visit, visit.replace(first, f"device_type={first.value.value}"))
        else:
            self._report_device(suspect, visit, visit.add_argument(node, f"device_type={suspect.data}"))

    def visit_Name(self, node: cst.Name, suspect: Suspect, visit: Visit) -> None:
        self._report_device(suspect, visit, visit.append(node, f"(device_type={suspect.data})"))

    def visit_Attribute(self, node: cst.Attribute, suspect: Suspect, visit: Visit) -> None:
        self._report_device(suspect, visit, visit.append(node, f"(device_type={suspect.data})"))

    def _report_device(self, suspect: Suspect, visit: Visit, edit: Edit) -> None:
        visit.report(suspect, visit.fix(Applicability.SAFE, "Say which device's autocast is meant", edit))


def _without_device(facts: FileFacts, wired: list[Wiring]) -> Iterator[Suspect]:
    """The decorators of ``torch.amp`` that are not told a device: calling them raises, and so does a bare one."""
    if facts.torch_version < SINCE:
        return
    for reference in facts.references:
        role, call, decorated = role_of(reference.name), reference.call, reference.decorates
        if role is None or not reference.name.startswith("torch.amp.") or isinstance(reference.node, ast.alias):
            continue
        if call is None and decorated is None:
            continue
        if call is not None and any(keyword.arg in (None, "device_type") for keyword in call.keywords):
            continue
        pair = [w for w in wired if decorated is not None and decorated in (w.function.forward, w.function.backward)]
        written = facts.span(call or reference.node)
        if is_caught(facts.source, facts.span(reference.node)):
            continue
        yield Suspect(
            span=written if decorated is None else facts.source.header_span(decorated),
            node=written,
            message=f"{role} without device_type raises TypeError where it is applied",
            scenarios=every_scenario(facts),
            standing=FORCED,
            causes=() if decorated is None else (Cause(facts.path, written, f"{role} without device_type"),),
            data=(pair[0].device if pair else None) or f'"{facts.device}"',
        )
