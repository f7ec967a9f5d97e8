"""AMP202: an autograd Function that autocast reaches, whose backward runs without the autocast of its forward."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from amplint.claims.custom_autograd import MEND, TOKENS, missing_both, suspect_at
from amplint.rewriting.decorators import report_missing
from amplint.rule import Applicability, Example, Rule, Severity, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import FileFacts, Visit


class MissingCustomBwd(Rule):
    """An autograd Function's `backward` has no `custom_bwd`, so it runs without the autocast that `forward` ran under.

    What it does
    ------------
    Reports `backward` of a `torch.autograd.Function` that has neither `torch.amp.custom_fwd` on `forward` nor
    `torch.amp.custom_bwd` on `backward`, where `forward` uses operations that autocast casts. With AMP201, which is
    about `forward` of the same Function, it is one finding: AMP201's, with `backward` as the other place. AMP201 says
    which Functions are left alone; one with one of the two decorators is AMP203's. Where the gradient provably meets a
    tensor of another dtype, AMP204 reports that operation besides.

    Why it is bad
    -------------
    `backward()` is called outside the autocast region, as it should be, so autocast is off in a hand-written
    `backward`. The gradient comes in the dtype of what `forward` returned, 16 bit; the saved tensors have the dtype
    that `forward` was given, float32. A product of the two raises. Where all operands happen to be float32, `backward`
    computes in float32 what `forward` computed in 16 bit: slowly, and unlike the backward of torch's own operations.

    How it shows
    ------------
    ```text
    RuntimeError: expected m1 and m2 to have the same dtype, but got: c10::BFloat16 != float
    RuntimeError: expected scalar type Half but found Float
    ```
    with a traceback that shows `loss.backward()` and the Function's `backward`, or no error at all.

    Example
    -------
    ```python
    class Bilinear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return torch.bmm(x, y)

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            return torch.bmm(grad, y.mT), torch.bmm(x.mT, grad)
    ```
    Use instead:
    ```python
    class Bilinear(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda")
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return torch.bmm(x, y)

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            return torch.bmm(grad, y.mT), torch.bmm(x.mT, grad)
    ```

    Fix safety
    ----------
    Unsafe, and the same edits as AMP201's: both decorators, never one alone. They change the dtype that `backward`
    computes in wherever it ran before, so gradients change. They need torch 2.4. They are not offered for a Function
    with `setup_context`, whose `backward` would raise `AttributeError`, nor as a cure for operands that disagree: a
    gradient that must meet a saved tensor of a fixed dtype has to be cast.
    """

    code: ClassVar[str] = "AMP202"
    name: ClassVar[str] = "missing-custom-bwd"
    severity: ClassVar[Severity] = Severity.WARNING
    tokens: ClassVar[tuple[str, ...]] = TOKENS
    mend: ClassVar[str] = MEND
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
from torch.autograd import Function
import torch as th


class Bilinear(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return th.bmm(x, y)

    @staticmethod
    def backward(ctx, grad):  # expect
        x, y = ctx.saved_tensors
        grad_x = th.bmm(grad, y.mT)  # expect AMP204
        return grad_x, th.bmm(x.mT, grad)  # expect AMP204


def reproduce():
    x = th.randn(2, 3, 4, requires_grad=True)
    y = th.randn(2, 4, 5, requires_grad=True)
    with th.autocast("cpu", dtype=th.bfloat16):
        loss = Bilinear.apply(x, y).sum()
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


class Bilinear(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return torch.bmm(x, y)

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return torch.bmm(grad, y.mT), torch.bmm(x.mT, grad)


class RoundStraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad
""",
            device="cpu",
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        for function in missing_both(facts):
            if function.backward is not None:
                message = (
                    f"{function.node.name}.backward has no custom_bwd: "
                    "forward runs with autocast on, backward with autocast off"
                )
                yield suspect_at(facts, function, function.backward, message)

    def visit_FunctionDef(self, node: cst.FunctionDef, suspect: Suspect, visit: Visit) -> None:
        report_missing(suspect, visit)
