"""AMP201: an autograd Function that autocast reaches, whose forward does not record autocast's state."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from amplint.claims.custom_autograd import MEND, TOKENS, missing_both, suspect_at
from amplint.rewriting.decorators import report_missing
from amplint.rule import Applicability, Example, Rule, Severity, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import FileFacts, Visit


class MissingCustomFwd(Rule):
    """An autograd Function's `forward` runs under autocast and has no `custom_fwd`, so `backward` cannot follow it.

    What it does
    ------------
    Reports `forward` of a `torch.autograd.Function` that has neither `torch.amp.custom_fwd` on `forward` nor
    `torch.amp.custom_bwd` on `backward`, and whose body, or a function that it calls, uses operations that autocast
    casts (matrix products, convolutions, attention) or their `out=` and in-place forms, which it does not cast. The
    finding names `backward` as the other place, AMP202's; a Function with one of the two is AMP203's.

    A Function with any decorator that amplint cannot see through is left alone. So is one whose `backward` opens an
    autocast region itself, as checkpointing does, or calls nothing that autocast has a say in, such as arithmetic with
    the gradient that `forward` had computed, unless products of `forward` in `out=` or in-place form get two dtypes. So
    is one whose `forward` computes in a region of its own, asks for the state of autocast, or has no operand whose
    dtype is known, and one whose `backward` gets nothing that autocast rounded: `forward` returns and saves what
    callers pass or float32, writes no product in place, and `backward` multiplies the gradient by nothing of another
    dtype. So is one that the file applies only where autocast is off. Operations on objects of classes that the code
    defines do not count: such a subclass of tensors decides what autocast does to it. Nor do those of `forward` whose
    result is only compared with something.

    The finding is possible only where the code casts all operands of those in `backward`, be it on some ways alone: the
    gradient to the dtype of what was saved, say, and that by `forward` when it got float16. It is possible only, too,
    where nothing that `backward` multiplies is known to have been rounded by autocast: a gradient times a saved float32
    tensor is float32.

    Why it is bad
    -------------
    Autocast is on while `forward` runs and off while `backward` runs, since `backward()` is called outside the region.
    So `forward` multiplies in 16 bit and saves what it was given in float32; `backward` gets a 16-bit gradient and
    multiplies it with the saved float32 tensors as they are. That raises, or runs in another precision than `forward`.
    The decorators are the documented way to give both the same autocast state: `custom_fwd` notes the state and the
    dtype, `custom_bwd` restores them.

    How it shows
    ------------
    ```text
    RuntimeError: expected m1 and m2 to have the same dtype, but got: c10::BFloat16 != float
    RuntimeError: mat1 and mat2 must have the same dtype, but got Half and Float
    ```
    or a backward that is slower than forward and takes twice the memory, with no error at all.

    Example
    -------
    ```python
    class FusedLinear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x @ weight.t()

        @staticmethod
        def backward(ctx, grad):
            x, weight = ctx.saved_tensors
            return grad @ weight, grad.t() @ x
    ```
    Use instead:
    ```python
    class FusedLinear(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda")
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x @ weight.t()

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(ctx, grad):
            x, weight = ctx.saved_tensors
            return grad @ weight, grad.t() @ x
    ```

    Fix safety
    ----------
    Unsafe: the decorators change the dtype that `backward` computes in wherever it ran before, and gradients with it.
    The fix adds both, since `custom_bwd` alone raises, with the device type that is judged (`--device`); it needs torch
    2.4. It is no cure for operands that disagree inside `forward`, above all not for `out=` and in-place products:
    `custom_fwd` leaves autocast as it is there, and autocast does not touch those forms.

    No fix is offered for a Function with `setup_context`, or one whose base class may define it: its `forward` gets no
    `ctx`, and `backward` then raises `AttributeError: ... has no attribute '_fwd_used_autocast'`. Give such a Function
    a `forward(ctx, ...)` that saves its tensors itself, or cast by hand in `backward`.
    """

    code: ClassVar[str] = "AMP201"
    name: ClassVar[str] = "missing-custom-fwd"
    severity: ClassVar[Severity] = Severity.WARNING
    tokens: ClassVar[tuple[str, ...]] = TOKENS
    mend: ClassVar[str] = MEND
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

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
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        grad_x = grad @ weight  # expect AMP204
        grad_weight = grad.t() @ x  # expect AMP204
        return grad_x, grad_weight


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
from torch.autograd import Function


class FusedLinear(Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight, grad.t() @ x


class ReverseGradient(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.scale * grad, None
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        for function in missing_both(facts):
            if function.forward is not None:
                message = (
                    f"{function.node.name}.forward has no custom_fwd: "
                    "forward runs with autocast on, backward with autocast off"
                )
                yield suspect_at(facts, function, function.forward, message)

    def visit_FunctionDef(self, node: cst.FunctionDef, suspect: Suspect, visit: Visit) -> None:
        report_missing(suspect, visit)
