"""AMP104: operands of different dtypes at an operation that wants one."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from amplint.finding import Applicability, Severity
from amplint.infer.facts import Kind
from amplint.judge import doubts
from amplint.rule import TENSOR_CODE, Example, Rule, Suspect

from ._alignment import alignment, disagreement, leads, wider
from ._borrowed_dtype import borrowed
from ._by_callers import aligned_elsewhere, brought_to_dtype
from ._disagreement import suspects_of
from ._extensions import handed_to_extensions

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.infer.facts import Conflict, FileFacts, Operand
    from amplint.visit import Visit


class MixedOperands(Rule):
    """An operation or layer that wants one dtype gets operands of different ones.

    What it does
    ------------
    Reports matrix products, linear, convolution and recurrent layers, attention layers, norms of a float32 tensor by
    half-precision weights, `lerp`, `grid_sample`, `cross`, `isclose` and the other operations that do not promote,
    where their operands differ in dtype in some scenario and no more special rule speaks: attention calls are AMP101's,
    hardcoded upcasts AMP102's, constants made without a dtype AMP103's, writes by index AMP105's, regions with autocast
    off AMP106's, `out=` and in-place products AMP107's, tables and buffers of a fixed dtype AMP110's.

    An operation in another file of the project that fails for what this file hands it is reported at the call that
    leads there, with the operation as a cause.

    Four more mistakes are the same in kind, and only likely. Under autocast, what a module is given, float32 at first,
    meets what autocast made of it, in an operation for which it casts nothing. What a module makes without a dtype,
    around a layer that it is given or freezes, is float32 beside a loaded model in 16 bit. Where callers decide each
    operand's dtype, and the file casts the one to the dtype of the other in one place but not in another, the latter
    was forgotten. And a tensor that was cast for one module is given to another, which elsewhere gets it as it came.

    A compiled extension that gets activations of different dtypes from under autocast is a warning, since which dtypes
    its kernel takes is not known here.

    Why it is bad
    -------------
    Addition and multiplication promote; these operations raise. In a half-precision model without autocast the odd one
    out is nearly always float32: a norm or a weight that was built with `dtype=torch.float32`, an adapter beside its
    base layer. Under autocast, operations that are on none
    of its lists meet what the listed ones return, float32 from some and 16 bit from others.

    How it shows
    ------------
    ```text
    RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16
    RuntimeError: expected scalar type Float but found BFloat16
    RuntimeError: Input type (float) and bias type (c10::Half) should be the same
    RuntimeError: expected dtype float for `end` but got dtype c10::BFloat16
    ```

    Example
    -------
    ```python
    self.down = nn.Linear(dim, rank, dtype=torch.float32)
    return self.base(x) + self.up(self.down(x))
    ```
    Use instead:
    ```python
    self.down = nn.Linear(dim, rank, dtype=torch.float32)
    return self.base(x) + self.up(self.down(x.to(self.down.weight.dtype))).to(x.dtype)
    ```

    Fix safety
    ----------
    Unsafe: the operation then computes in another precision. Where one operand is a parameter, the others are cast to
    its dtype; otherwise the wider operand is cast to the dtype of the narrower one, which in a half-precision model is
    that of the model.
    """

    code: ClassVar[str] = "AMP104"
    name: ClassVar[str] = "mixed-operands"
    severity: ClassVar[Severity] = Severity.ERROR
    tokens: ClassVar[tuple[str, ...]] = ("torch", "forward")
    context: ClassVar[tuple[str, ...]] = TENSOR_CODE
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim, dtype=torch.float32))

    def forward(self, x: torch.Tensor):
        return self.weight * (x * x.pow(2).mean(-1, keepdim=True).rsqrt())


class Block(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.norm = RMSNorm(dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor):
        return x + self.proj(self.norm(x))  # expect


def reproduce():
    torch.set_default_dtype(torch.bfloat16)
    try:
        Block()(torch.randn(2, 8))
    finally:
        torch.set_default_dtype(torch.float32)
""",
            scenario="bf16-mixed-params",
        ),
        Example(
            """\
import torch
from torch import nn


class Adapted(nn.Module):
    def __init__(self, dim=8, rank=2):
        super().__init__()
        self.base = nn.Linear(dim, dim)
        self.down = nn.Linear(dim, rank, bias=False, dtype=torch.float32)
        self.up = nn.Linear(rank, dim, bias=False, dtype=torch.float32)

    def forward(self, x: torch.Tensor):
        return self.base(x) + self.up(self.down(x))  # expect


def reproduce():
    torch.set_default_dtype(torch.bfloat16)
    try:
        Adapted()(torch.randn(2, 8))
    finally:
        torch.set_default_dtype(torch.float32)
""",
            scenario="bf16-mixed-params",
        ),
        Example(
            """\
import torch
from torch import nn


class Average(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.project = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor):
        hidden = self.norm(x)
        return hidden.lerp(self.project(hidden), 0.1)  # expect


def reproduce():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        Average()(torch.randn(2, 8))
""",
            scenario="autocast-bf16",
        ),
        Example(
            """\
import torch
from torch import nn


class Gated(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.gate = nn.Linear(dim, dim)
        self.candidate = nn.Linear(dim, dim)

    def forward(self, x):
        return x.lerp(self.candidate(x).tanh(), self.gate(x).sigmoid())  # expect


def reproduce():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        Gated()(torch.randn(2, 8))
""",
            scenario="autocast-bf16",
        ),
        Example(
            """\
import torch
from torch import nn


class Adapted(nn.Module):
    \"\"\"An adapter around a layer of a model that was loaded in 16 bit.\"\"\"

    def __init__(self, base: nn.Linear, rank=2):
        super().__init__()
        self.base = base
        self.base.weight.requires_grad = False
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Parameter(torch.zeros(rank, base.out_features))
        self.to(base.weight.device)

    def forward(self, x: torch.Tensor):
        return self.base(x) + self.down(x) @ self.up  # expect


class Rescaled(nn.Linear):
    def __init__(self, dim=8, rank=2):
        super().__init__(dim, dim)
        self.weight.requires_grad_(False)
        self.down = nn.ParameterDict({"default": nn.Parameter(torch.randn(rank, dim))})
        self.up = nn.Linear(rank, dim)

    def forward(self, x: torch.Tensor):
        result = super().forward(x)
        return result + self.up(x @ self.down["default"].T)  # expect


def reproduce():
    Adapted(nn.Linear(8, 8, dtype=torch.bfloat16))(torch.randn(2, 8, dtype=torch.bfloat16))
""",
            scenario="bf16-mixed-params",
        ),
        Example(
            """\
import torch


def adapted(x, weight, down, up):
    return x @ weight + x @ down.t() @ up.t()  # expect


class Adapt(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(ctx, x, weight, down, up):
        ctx.save_for_backward(weight, down, up)
        return adapted(x, weight, down, up)

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, grad_output):
        weight, down, up = ctx.saved_tensors
        dtype = grad_output.dtype
        grad = grad_output @ weight.t() + grad_output @ up.to(dtype) @ down.to(dtype)
        return grad, None, None, None


def reproduce():
    x, weight = torch.randn(4, 8, dtype=torch.bfloat16), torch.randn(8, 8, dtype=torch.bfloat16)
    Adapt.apply(x, weight, torch.randn(2, 8), torch.randn(8, 2))
""",
            scenario="bf16-mixed-params",
        ),
        Example(
            """\
import torch
import torch.nn.functional as F
from torch import nn


class Autoencoder(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.enter = nn.Linear(dim, dim)
        self.weight = nn.Parameter(torch.randn(dim, dim))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, x: torch.Tensor):
        x = x.to(self.enter.weight.dtype)
        return self.decode(self.enter(x))

    def encode(self, x: torch.Tensor):
        return self.enter(x)  # expect

    def decode(self, x: torch.Tensor):
        return F.linear(x, self.weight.to(x.dtype), self.bias.to(x.dtype))

    def project(self, x: torch.Tensor):
        return F.linear(x, self.weight.to(x.dtype), self.bias)  # expect


def reproduce():
    model = Autoencoder()
    model(torch.randn(2, 8, dtype=torch.bfloat16))
    errors = []
    for method in (model.encode, model.project):
        try:
            method(torch.randn(2, 8, dtype=torch.bfloat16))
        except RuntimeError as error:
            errors.append(error)
    if len(errors) == 2:
        raise errors[0]
""",
            scenario="bf16-mixed-params",
        ),
        Example(
            """\
import torch
from torch import nn


class Rotated(nn.Module):
    def __init__(self, layer, dim=8):
        super().__init__()
        self.layer = layer
        self.rotate = nn.Linear(dim, dim, bias=False)
        self.active = True

    def forward(self, x: torch.Tensor):
        if not self.active:
            return self.layer(x)
        before = x.dtype
        x = x.to(self.rotate.weight.dtype)
        x = self.rotate(x)
        return self.layer(x).to(before)  # expect


def reproduce():
    Rotated(nn.Linear(8, 8, dtype=torch.bfloat16))(torch.randn(2, 8, dtype=torch.bfloat16))
""",
            scenario="bf16-mixed-params",
        ),
        Example(
            """\
import torch
from torch import nn


class Blend(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, weights):
        return torch.ops.extension.blend(values, weights)

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class Sampler(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.values = nn.Linear(dim, dim)
        self.weights = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor):
        values, weights = self.values(x), self.weights(x).softmax(-1)
        return Blend.apply(values, weights)  # expect


def reproduce():
    library = torch.library.Library("extension", "DEF")
    library.define("blend(Tensor values, Tensor weights) -> Tensor")
    library.impl("blend", lambda values, weights: values.lerp(weights, 0.5), "CPU")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        Sampler()(torch.randn(2, 8))
""",
            scenario="autocast-bf16",
            emulated=True,
        ),
        Example(
            """\
import torch
import torch.nn.functional as F
from torch import nn


class PreciseNorm(nn.LayerNorm):
    def forward(self, x: torch.Tensor):
        return F.layer_norm(x.float(), self.normalized_shape, self.weight, self.bias, self.eps).to(x.dtype)  # expect


def reproduce():
    PreciseNorm(8).half()(torch.randn(2, 8).half())
""",
            scenario="fp16",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim, dtype=torch.float32))

    def forward(self, x: torch.Tensor):
        x32 = x.float()
        return (self.weight * (x32 * x32.pow(2).mean(-1, keepdim=True).rsqrt())).type_as(x)


class Block(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.norm = RMSNorm(dim)
        self.proj = nn.Linear(dim, dim)
        self.register_buffer("rotation", torch.eye(dim))

    def forward(self, x: torch.Tensor, mask: torch.Tensor):
        hidden = self.proj(self.norm(x))
        hidden = hidden @ self.rotation
        scale = torch.tensor(0.5, device=x.device)
        causal = torch.ones(4, 4).tril().bool()
        return torch.where(causal[0, 0], hidden * scale, x) + mask.to(x) @ torch.zeros_like(x)
"""
        ),
        Example(
            """\
import torch
from torch import nn


class Adapter(nn.Module):
    def __init__(self, base: nn.Linear, rank=4):
        super().__init__()
        self.base = base
        self.down = nn.Linear(base.in_features, rank, dtype=torch.float32)
        self.up = nn.Linear(rank, base.out_features, dtype=torch.float32)

    def forward(self, x: torch.Tensor):
        result = self.base(x)
        if torch.is_autocast_enabled(x.device.type):
            return result + self.up(self.down(x))
        delta = self.up(self.down(x.to(self.down.weight.dtype)))
        return result + delta.to(result.dtype)
"""
        ),
        Example(
            """\
import torch
from torch import nn


class Adapted(nn.Module):
    def __init__(self, base: nn.Linear, rank=2):
        super().__init__()
        self.base = base
        self.base.weight.requires_grad = False
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)

    def forward(self, x: torch.Tensor):
        delta = self.up(self.down(x.to(self.down.weight.dtype)))
        return self.base(x) + delta.to(x.dtype)


class Mixing(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.value = nn.Linear(dim, dim)
        self.gate = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor, first=None):
        value = self.value(x)
        return value if first is None else value.lerp(first, self.gate(x).sigmoid())


class Following(nn.Module):
    def __init__(self, base: nn.Linear, rank=2):
        super().__init__()
        self.base = base
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.to(base.weight.device, dtype=base.weight.dtype)

    def forward(self, x: torch.Tensor):
        return self.base(x), self.down(x)


class PreNorm(nn.Module):
    def __init__(self, dim, layer):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.layer = layer

    def forward(self, x: torch.Tensor):
        return self.layer(self.norm(x))


class Rotated(nn.Module):
    def __init__(self, layer, dim=8):
        super().__init__()
        self.layer = layer
        self.rotate = nn.Linear(dim, dim, bias=False)
        self.active = True

    def forward(self, x: torch.Tensor):
        if not self.active:
            return self.layer(x)
        convert = not torch.is_autocast_enabled("cuda")
        if convert:
            before = x.dtype
            x = x.to(self.rotate.weight.dtype)
        x = self.rotate(x)
        if convert:
            x = x.to(before)
        return self.layer(x)
"""
        ),
        Example(
            """\
import torch
import torch.nn.functional as F
from torch import nn


class PreciseNorm(nn.LayerNorm):
    def forward(self, x: torch.Tensor):
        weight, bias = self.weight.float(), self.bias.float()
        return F.layer_norm(x.float(), self.normalized_shape, weight, bias, self.eps).to(x.dtype)


class Plain(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.norm = nn.LayerNorm(dim, elementwise_affine=False)

    def forward(self, x: torch.Tensor):
        return self.norm(x.float()).to(x.dtype)


def reproduce():
    for norm in (PreciseNorm(8), Plain()):
        norm.half()(torch.randn(2, 8).half())
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        for suspect in suspects_of(facts, Kind.MIXED):
            brought = suspect.data.aligned is not None and brought_to_dtype(facts, suspect.data)
            yield suspect.doubted(doubts.BROUGHT_TO_DTYPE) if brought else suspect
        yield from handed_to_extensions(facts)
        yield from borrowed(facts)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        self._report(node, suspect, visit)

    def visit_BinaryOperation(self, node: cst.BinaryOperation, suspect: Suspect, visit: Visit) -> None:
        self._report(node, suspect, visit)

    def visit_AugAssign(self, node: cst.AugAssign, suspect: Suspect, visit: Visit) -> None:
        self._report(node, suspect, visit)

    def _report(self, node: cst.CSTNode, suspect: Suspect, visit: Visit) -> None:
        conflict: Conflict | None = suspect.data
        if conflict is None:
            visit.report(suspect)
            return
        message = aligned_elsewhere(visit.facts, conflict) or disagreement(visit.facts, conflict)
        for leader in _leaders(conflict):
            edits = alignment(visit, node, conflict, leader)
            if edits is not None:
                fix = visit.fix(Applicability.UNSAFE, "Cast to the dtype of the other operand", *edits)
                visit.report(suspect, fix, message)
                return
        visit.report(suspect, message=message)


def _leaders(conflict: Conflict) -> list[Operand]:
    """The operands whose dtype the others should get, the best first: a parameter, else the narrower one."""
    upcast, narrow = wider(conflict)
    if leads(conflict, upcast) and not leads(conflict, narrow):
        return [upcast]
    return [narrow] if leads(conflict, narrow) and not leads(conflict, upcast) else [narrow, upcast]
