"""AMP111: activations that become float32 on the way through a half-precision module."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from amplint.finding import Applicability, Severity
from amplint.infer.facts import Apart, Promotion
from amplint.rule import TENSOR_CODE, Example, Rule, Suspect

from ._drift import (
    cast_source,
    merged,
    padded,
    promotions_of,
    report_cast_back,
    report_padding,
    report_promotion,
    rotated,
    widened,
)
from ._following import Joined
from ._merging import Merge
from ._rotation import Rotation

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.infer.facts import FileFacts
    from amplint.visit import Visit


class PromoteDrift(Rule):
    """Activations, or a weight, become float32 without a word, and stay so where a half-precision one is expected.

    What it does
    ------------
    Reports, where nothing casts the result back:

    - sums, products, `torch.cat`, `torch.where` and the other operations that promote, where a half-precision operand
      meets a float32 one that is a constant made without a dtype, a parameter that keeps float32, or cast up by the
      module itself, and what is concatenated with a constant takes its own place: `x = torch.cat([pad, x])`; with
      `--pedantic` also where `forward` returns the result, which may be meant, as a router's weights are;
    - `torch.cat` of a tensor and a constant of at least three dimensions that was made for it, on its device, and
      without a dtype;
    - `torch.where` under autocast between activations and a parameter, which autocast does not cast, unless the result
      goes straight on into an operation with another parameter, or with items of an embedding, that is float32 too;
    - a rotary embedding that takes the sine and cosine of its angles itself: those are float32 wherever they are right;
    - an operation that autocast runs in float32 (`F.normalize`, `softmax`, a sum), on the way of a query, key or value
      into a kernel or `autograd.Function` that gets the others in half precision;
    - `layer.weight.data = layer.weight.data * self.scale`: the product replaces another module's weight, and its dtype;
      with `--pedantic` also of a bias, which layers of quantized weights cast themselves.

    Where an operation in the same file fails for it, that is the finding (AMP102, AMP103, AMP104), and where the
    float32 operand is a table of a fixed dtype, AMP110 speaks.

    Why it is bad
    -------------
    In a half-precision model everything behind such a place is float32 until a layer with half-precision weights
    raises, which may be in another file; up to there it takes twice the memory, and the products run several times
    slower than in 16 bit. Compiled kernels get what they were not built for. A merged weight makes its layer raise for
    the next input.

    How it shows
    ------------
    ```text
    RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16
    RuntimeError: Expected query, key, and value to have the same dtype, but got query.dtype: float key.dtype:
    c10::BFloat16 and value.dtype: c10::BFloat16 instead.
    ```
    in the next layer; or not at all, where only promoting operations follow.

    Example
    -------
    ```python
    weights = torch.linspace(0, 1, x.shape[-1], device=x.device)
    return x * weights
    ```
    Use instead:
    ```python
    weights = torch.linspace(0, 1, x.shape[-1], device=x.device)
    return x * weights.to(x.dtype)
    ```

    Fix safety
    ----------
    Unsafe: the operation, or what follows it, is then computed in half precision, and under autocast its result may be
    narrower than it was. A float32 operand is cast to the dtype of the other; the result of a rotation, of an operation
    that autocast runs in float32, and of a merge is cast back to the dtype of what it replaces. Where the operation
    itself needs float32, cast its result instead of the operand.
    """

    code: ClassVar[str] = "AMP111"
    name: ClassVar[str] = "promote-drift"
    severity: ClassVar[Severity] = Severity.WARNING
    tokens: ClassVar[tuple[str, ...]] = ("forward", ".cos(", ".data = ")
    context: ClassVar[tuple[str, ...]] = TENSOR_CODE
    claims_failure: ClassVar[bool] = False
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Fade(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor):
        weights = torch.linspace(0, 1, x.shape[-1], device=x.device)
        return self.proj(x) * weights  # expect


def reproduce():
    x = torch.randn(2, 8, dtype=torch.bfloat16)
    assert Fade().to(torch.bfloat16)(x).dtype == x.dtype, "the module returns float32"
""",
            scenario="bf16",
            pedantic=True,
        ),
        Example(
            """\
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim, dtype=torch.float32))

    def forward(self, x: torch.Tensor):
        normed = x * x.pow(2).mean(-1, keepdim=True).rsqrt()
        return normed * self.weight  # expect


def reproduce():
    x = torch.randn(2, 8, dtype=torch.bfloat16)
    assert RMSNorm(8)(x).dtype == x.dtype, "the norm returns float32"
""",
            scenario="bf16-mixed-params",
            pedantic=True,
        ),
        Example(
            """\
import torch
from torch import nn


class Register(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: torch.Tensor):
        blank = torch.zeros(len(x), 1, x.shape[-1], device=x.device)
        return torch.cat([blank, self.norm(x)], dim=1)  # expect


def reproduce():
    x = torch.randn(2, 3, 8, dtype=torch.float16)
    assert Register().half()(x).dtype == x.dtype, "the module returns float32"
""",
            scenario="fp16",
            pedantic=True,
        ),
        Example(
            """\
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        normed = x.float()
        normed = normed * normed.pow(2).mean(-1, keepdim=True).rsqrt()
        return self.weight * normed  # expect


def reproduce():
    x = torch.randn(2, 8, dtype=torch.bfloat16)
    assert RMSNorm(8).to(torch.bfloat16)(x).dtype == x.dtype, "the norm returns float32"
""",
            scenario="bf16",
            pedantic=True,
        ),
        Example(
            """\
import torch
from torch import nn


class PaddedQuery(nn.Module):
    def __init__(self, dim=8, to=4):
        super().__init__()
        self.to_query = nn.Linear(dim, dim)
        self.to = to

    def forward(self, x):
        query = self.to_query(x)
        pad = torch.zeros(x.shape[0], self.to - x.shape[1], x.shape[2]).to(query.device)
        query = torch.cat([query, pad], dim=1)  # expect
        assert query.dtype == x.dtype, "the query is float32"
        return query.argmax(-1)


def reproduce():
    PaddedQuery().half()(torch.randn(2, 3, 8, dtype=torch.float16))
""",
            scenario="fp16",
        ),
        Example(
            """\
import torch
from torch import nn


class Condition(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.embed = nn.Linear(dim, dim)
        self.null = nn.Parameter(torch.randn(dim))

    def forward(self, x: torch.Tensor, keep: torch.BoolTensor):
        tokens = self.embed(x)
        return torch.where(keep[:, None], tokens, self.null)  # expect


def reproduce():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        tokens = Condition()(torch.randn(2, 8), torch.tensor([True, False]))
    assert tokens.dtype == torch.bfloat16, "the tokens are float32"
""",
            scenario="autocast-bf16",
        ),
        Example(
            """\
import torch
from torch import nn


def rotate_half(x):
    left, right = x.chunk(2, dim=-1)
    return torch.cat([-right, left], dim=-1)


def rotate(t, freqs):
    size = freqs.shape[-1]
    t, rest = t[..., :size], t[..., size:]
    t = (t * freqs.cos()) + (rotate_half(t) * freqs.sin())  # expect
    return torch.cat([t, rest], dim=-1)


class Attention(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.qk = nn.Linear(dim, 2 * dim)

    def forward(self, x, freqs):
        q, k = self.qk(x).chunk(2, dim=-1)
        return rotate(q, freqs), rotate(k, freqs)


def reproduce():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        q, _ = Attention()(torch.randn(2, 3, 8), torch.linspace(0, 3, 3)[:, None].expand(3, 4))
    assert q.dtype == torch.bfloat16, "the query is float32"
""",
            scenario="autocast-bf16",
        ),
        Example(
            """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.amp import custom_bwd, custom_fwd


class Scores(torch.autograd.Function):
    @staticmethod
    @custom_fwd(device_type="cuda")
    def forward(ctx, q, k, v):
        if not q.dtype == k.dtype == v.dtype:
            raise RuntimeError("the kernel is built for one dtype")
        return q * k * v

    @staticmethod
    @custom_bwd(device_type="cuda")
    def backward(ctx, grad):
        return None, None, None


class DeltaRule(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = F.normalize(q, dim=-1)  # expect
        k = F.normalize(k, dim=-1)
        return Scores.apply(q, k, v)


def reproduce():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        DeltaRule()(torch.randn(2, 3, 8))
""",
            scenario="autocast-bf16",
            emulated=True,
        ),
        Example(
            """\
import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self, base_layer):
        super().__init__()
        self.base_layer = base_layer
        self.scales = nn.ParameterDict()

    def add(self, name):
        self.scales[name] = nn.Parameter(torch.ones(self.base_layer.out_features, 1))

    def merge(self, name):
        layer = self.base_layer
        scale = self.scales[name].data
        layer.weight.data = layer.weight.data * scale  # expect

    def forward(self, x):
        return self.base_layer(x)


def reproduce():
    scaled = Scaled(nn.Linear(8, 8).to(torch.bfloat16))
    scaled.add("default")
    scaled.merge("default")
    scaled(torch.randn(2, 8, dtype=torch.bfloat16))
""",
            scenario="bf16-mixed-params",
        ),
        Example(
            """\
import torch
from torch import nn


class Shifted(nn.Module):
    def __init__(self, base_layer):
        super().__init__()
        self.base_layer = base_layer
        self.shifts = nn.ParameterDict()

    def add(self, name):
        self.shifts[name] = nn.Parameter(torch.ones(self.base_layer.out_features))

    def merge(self, name):
        layer = self.base_layer
        layer.bias.data = layer.bias.data + self.shifts[name].data  # expect

    def forward(self, x):
        return self.base_layer(x)


def reproduce():
    shifted = Shifted(nn.Linear(8, 8).to(torch.bfloat16))
    shifted.add("default")
    shifted.merge("default")
    shifted(torch.randn(2, 8, dtype=torch.bfloat16))
""",
            scenario="bf16-mixed-params",
            pedantic=True,
        ),
        Example(
            """\
import torch
from torch import nn


def prefixed(state, length, inverted):
    prefix = torch.ones(state.mask.size(0), 1, 1, length).to(state.mask.device)
    if inverted:
        prefix = 1.0 - prefix
    return torch.cat([prefix, state.mask], dim=-1)  # expect


class State:
    def __init__(self, mask):
        self.mask = mask


class Prefix(nn.Module):
    def forward(self, state):
        return prefixed(state, 2, True)


def reproduce():
    mask = torch.zeros(2, 1, 1, 3, dtype=torch.bfloat16)
    assert Prefix()(State(mask)).dtype == mask.dtype, "the mask is float32"
""",
            scenario="bf16",
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
        normed = x * x.pow(2).mean(-1, keepdim=True).rsqrt()
        return (normed * self.weight).type_as(x)


class Fade(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.norm = RMSNorm(dim)
        self.scale = nn.Parameter(torch.ones(dim))

    def forward(self, x: torch.Tensor, target: torch.Tensor):
        weights = torch.linspace(0, 1, x.shape[-1], device=x.device)
        faded = self.norm(x) * weights.to(x.dtype) * self.scale + torch.tensor(0.5)
        return torch.cat([x.new_zeros(x.shape), faded]), (weights * (x - target)).mean()
"""
        ),
        Example(
            """\
import torch
import torch.nn.functional as F
from torch import nn


class Kernel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        return q * k * v

    @staticmethod
    def backward(ctx, grad):
        return grad, grad, grad


def rotate_half(x):
    left, right = x.chunk(2, dim=-1)
    return torch.cat([-right, left], dim=-1)


def rotate(t, freqs):
    return ((t * freqs.cos()) + (rotate_half(t) * freqs.sin())).type_as(t)


def turn(t, cos, sin):
    return t * cos + rotate_half(t) * sin


class Attention(nn.Module):
    def __init__(self, base, dim=8):
        super().__init__()
        self.base = base
        self.qkv = nn.Linear(dim, 3 * dim)
        self.weight = nn.Parameter(torch.ones(dim))
        self.gain = nn.Parameter(torch.ones(dim))

    def merge(self):
        self.base.weight.data *= self.gain
        self.base.bias.data = (self.base.bias.data * self.gain).to(self.base.bias.dtype)
        self.weight.data = self.weight.data * self.gain

    def forward(self, x, freqs):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k = F.normalize(q, dim=-1).to(v.dtype), F.normalize(k, dim=-1).to(v.dtype)
        kept = (x.float() * x.float().pow(2).mean(-1, keepdim=True).rsqrt()).to(x.dtype)
        x = torch.cat([x, torch.zeros(x.shape, device=x.device, dtype=x.dtype)])
        return Kernel.apply(rotate(q, freqs), k, v) + self.weight * kept, x
"""
        ),
        Example(
            """\
import torch
from torch import nn


class Masked(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.embed = nn.Linear(dim, dim)
        self.mask = nn.Parameter(torch.randn(dim))
        self.first = nn.Parameter(torch.randn(1, 1, dim))
        self.positions = nn.Embedding(3, dim)

    def forward(self, x: torch.Tensor, ids: torch.LongTensor, keep: torch.BoolTensor = None):
        tokens, others = self.embed(x), self.embed(x)
        if keep is not None:
            tokens = torch.where(keep, tokens, self.mask)
            others = torch.where(keep, others, self.mask)
        tokens = tokens + self.positions(ids)
        return torch.cat([self.first.expand(len(x), -1, -1), others], dim=1), tokens
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        yield from promotions_of(facts, fixed=False)
        yield from widened(facts)
        yield from padded(facts)
        yield from rotated(facts)
        yield from merged(facts)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        _report(node, suspect, visit)

    def visit_BinaryOperation(self, node: cst.BinaryOperation, suspect: Suspect, visit: Visit) -> None:
        _report(node, suspect, visit)


def _report(node: cst.CSTNode, suspect: Suspect, visit: Visit) -> None:
    found = suspect.data
    if isinstance(found, Promotion):
        report_promotion(visit, node, suspect)
    elif isinstance(found, Joined):
        report_padding(visit, node, suspect)
    elif isinstance(found, Rotation):
        report_cast_back(visit, node, suspect, found.rotated)
    elif isinstance(found, Merge):
        report_cast_back(visit, node, suspect, found.weight)
    elif isinstance(found, Apart):
        report_cast_back(visit, node, suspect, cast_source(found.node))
