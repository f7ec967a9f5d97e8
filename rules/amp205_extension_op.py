"""AMP205: an autograd Function hands a compiled extension whatever dtype autocast leaves it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.compiled_extensions import extension_call
from amplint.claims.custom_autograd import autocast_scenarios, readable, role_of
from amplint.rule import ASSUMED, Cause, Evidence, Example, Rule, Severity, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amplint.rule import FileFacts


class ExtensionOp(Rule):
    """A compiled extension is called in a Function's forward with the tensors as autocast left them.

    What it does
    ------------
    Reports subclasses of `torch.autograd.Function` whose forward has no `custom_fwd` and passes two of its own tensors,
    or their `data_ptr()`, to a function that no Python file of the project defines: one that
    `torch.utils.cpp_extension.load` loads, an operator below `torch.ops`, or one that is imported. Silent where forward
    casts, or asks for a dtype or for autocast. Off until selected: what a kernel takes, and what its callers give it,
    is not known here.

    Why it is bad
    -------------
    Autocast knows nothing of the extension, so one argument may arrive in float16, from a convolution, and the next in
    float32, from a norm. Most kernels take one dtype, and many only float32: they raise, or read the bytes of one as
    the other.

    How it shows
    ------------
    ```text
    RuntimeError: expected scalar type Float but found Half
    ```

    Example
    -------
    ```python
    class RoiPool(torch.autograd.Function):
        @staticmethod
        def forward(ctx, features, boxes):
            return _C.roi_pool(features, boxes)
    ```
    Use instead:
    ```python
    class RoiPool(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
        def forward(ctx, features, boxes):
            return _C.roi_pool(features, boxes)
    ```

    Fix safety
    ----------
    There is no fix: which dtypes the kernel takes is not in this file. `cast_inputs=torch.float32` is right for one
    that takes float32 alone; one that takes 16 bit needs its arguments cast to one dtype. Backward needs `custom_bwd`
    then."""

    code: ClassVar[str] = "AMP205"
    name: ClassVar[str] = "extension-op"
    severity: ClassVar[Severity] = Severity.WARNING
    evidence: ClassVar[Evidence] = Evidence.CITED
    default: ClassVar[bool] = False
    tokens: ClassVar[tuple[str, ...]] = ("Function",)

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch.utils.cpp_extension import load

kernels = load(name="kernels", sources=["kernels.cpp", "kernels.cu"])


class Sample(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, offsets):  # expect
        ctx.save_for_backward(features, offsets)
        return kernels.sample(features.contiguous(), offsets)

    @staticmethod
    def backward(ctx, grad):
        return kernels.sample_backward(grad, *ctx.saved_tensors)
""",
            scenario="autocast-fp16",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch.utils.cpp_extension import load

kernels = load(name="kernels", sources=["kernels.cpp", "kernels.cu"])


class Sample(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
    def forward(ctx, features, offsets):
        return kernels.sample(features, offsets)

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, grad):
        return grad, None


class SampleAsOne(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, offsets):
        return kernels.sample(features, offsets.to(features.dtype))

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class Version(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.version = kernels.version()
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        scenarios = autocast_scenarios(facts)
        if not scenarios:
            return
        for function in facts.autograd_functions:
            forward = function.forward
            if forward is None or not readable(function) or function.sensitive_forward:
                continue
            if any(role_of(decorator.name) for decorator in function.forward_decorators):
                continue
            call = extension_call(facts, function)
            if call is None:
                continue
            name = ast.unparse(call.func)
            span = facts.source.header_span(forward)
            message = f"{function.node.name}.forward hands {name} tensors in the dtypes that autocast left them in"
            cause = Cause(facts.path, facts.span(call), "a compiled extension: autocast does not cast its arguments")
            yield Suspect(span, span, message, scenarios, ASSUMED, (cause,))
