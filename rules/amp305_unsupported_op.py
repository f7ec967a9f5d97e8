"""AMP305: an operation that has no kernel for the low precision it gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from amplint.claims.low_precision import causes_of, dtype_name, quoted, strongest
from amplint.claims.operands import dtype_of_tensor, is_stable, short_name
from amplint.claims.refused_operands import Refusal, device_of, refusals
from amplint.rewriting.casts import cast_unpacked, result_dtype
from amplint.rewriting.nodes import find_operand
from amplint.rewriting.sparse_products import sparse_product_fix
from amplint.rule import Applicability, Edit, Example, Rule, Severity, Span, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import FileFacts, Fix, Visit

_FACTORS = ("qr", "svd", "eigh", "linalg_qr", "linalg_svd", "linalg_eigh")
"""Operations that give several tensors, each in the dtype of what they factorise."""


class UnsupportedOp(Rule):
    """An operation gets a low-precision tensor, for which it has no kernel.

    What it does
    ------------
    Reports float16 and bfloat16 operands of operations that exist for float32 and float64 only: linear algebra (`inv`,
    `solve`, `svd`, `qr`, `eigh`, `cholesky`, `det`), `quantile`, `cdist` with a `p` other than 2, `histc`, `polar`,
    matrix norms that factorise (`ord=2` and `"nuc"`), and for bfloat16 alone the transforms of `torch.fft`,
    `view_as_complex` and `.numpy()`. Which ones is read from what torch declares for the device. And products of a
    sparse COO tensor with a dense one on CUDA, to which autocast casts both also below `torch.sparse.mm`: switch it off
    around them, and cast the dense one to float32 there. cuFFT transforms
    float16 where the size is a power of two: only another number that is seen to be the size is reported. Left alone
    are operations that autocast computes in float32 where it is on, that raise for few rows only, as `cdist` with
    `p=2`, and that a float32 operand promotes, as `stft` with a window. `.numpy()` is reported behind `.cpu()` alone,
    unless `--device cpu` is judged: without, it raises on the device, whatever the dtype.
    What methods of classes do that are no modules, such as optimizers and transforms, is only possible under autocast:
    nobody needs to call them there. Weights are low precision in half models wherever code meets them: those of a layer
    that `isinstance` finds or an annotation promises, and what an optimizer steps. Where the project supports older
    releases of torch, what those lack is reported as a warning that names the release, such as `triu` of bfloat16 up to
    torch 2.0.
    `nn.init.orthogonal_` factorises as well: it is reported in methods that initialise a module they are handed, as a
    warning, since such a module is often made in float32 and converted after.

    Why it is bad
    -------------
    They raise. Autocast makes the operand low precision by a matrix product or convolution before, and casts for few
    of these operations; with half weights it does not act at all.

    How it shows
    ------------
    ```text
    RuntimeError: linalg.inv: Low precision dtypes not supported. Got BFloat16
    RuntimeError: quantile() input tensor must be either float or double dtype
    NotImplementedError: "addmm_sparse_cuda" not implemented for 'Half'
    TypeError: Got unsupported ScalarType BFloat16
    ```

    Example
    -------
    ```python
    gram = self.proj(x) @ self.proj(x).mT  # bfloat16 under autocast
    inverse = torch.linalg.inv(gram)
    ```
    Use instead:
    ```python
    gram = self.proj(x) @ self.proj(x).mT
    inverse = torch.linalg.inv(gram.float()).to(gram.dtype)
    ```

    Fix safety
    ----------
    Unsafe: `.float()` computes float64 and complex operands, which ran before, with less precision. The result is cast
    back to the operand's dtype; of several results, those of `qr`, `svd` and `eigh` that are unpacked into variables.
    What initialises in place fills a float32 copy, which the tensor takes over. A sparse product is computed with
    autocast switched off around it, where its statement is one line: what is cast elsewhere, autocast casts back.
    """

    code: ClassVar[str] = "AMP305"
    name: ClassVar[str] = "unsupported-op"
    severity: ClassVar[Severity] = Severity.ERROR
    tokens: ClassVar[tuple[str, ...]] = (
        *("linalg", "fft", "quantile", "cdist", "pdist", ".numpy(", "_as_complex", "complex(", "polar", "angle("),
        *("svd", "qr(", "cholesky", "inverse(", "pinverse", "det(", "lu(", "lu_", "stft", "hist", "igamma", "ctc_loss"),
        *("geqrf", "ormqr", "orgqr", "triangular_solve", "special.", "vander", "margin_loss", "rrelu"),
        *("avg_pool3d", "orthogonal", "lowrank", "MultivariateNormal", "Wishart"),
        *("triu", "tril", "bucketize", "searchsorted", "cross(", "gamma(", "erfinv", "frexp", "grid_sample", "isin("),
        *("kthvalue", "logaddexp", "median", "multinomial", "nextafter", "max_pool", "max_unpool", "prelu", "PReLU"),
        *("smooth_l1", "SmoothL1", "upsample_", "Upsampling", "sparse", "spmm", "dsmm", "i1(", "i1e(", "unique", "nuc"),
    )
    context: ClassVar[tuple[str, ...]] = ("torch",)
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Whiten(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor):
        h = self.proj(x)
        covariance = h.mT @ h
        return torch.linalg.inv(covariance)  # expect


def reproduce():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        Whiten()(torch.randn(16, 8))
""",
            scenario="autocast-bf16",
            emulated=True,
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Spectrum(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor):
        h = self.proj(x)
        if h.dtype in (torch.float16, torch.bfloat16):
            h = h.float()
        with torch.autocast(x.device.type, enabled=False):
            values = torch.linalg.eigvalsh((h.mT @ h).float())
        return values, torch.fft.rfft(h), h.cpu().numpy(), torch.quantile(h.float(), 0.5), torch.cdist(h, h)


def reproduce():
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        Spectrum()(torch.randn(16, 8))
""",
            emulated=True,
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        for found in refusals(facts):
            yield _suspect(facts, found)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect, _fix(node, suspect.data, visit))

    def visit_BinaryOperation(self, node: cst.BinaryOperation, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect, sparse_product_fix(node, suspect.data, visit))


def _suspect(facts: FileFacts, found: list[Refusal]) -> Suspect:
    worst, lanes, standing = strongest(found)
    operand, span = worst.operands[0], facts.span(worst.use.node)
    given = f"{dtype_name(operand, worst.low)} {quoted(operand.node, 'tensor')}"
    device = device_of(facts, worst.use)
    message = f"{short_name(worst.use.op)} has no kernel for {given} on {device}: it raises"
    if worst.sparse is not None:
        product = f"{short_name(worst.use.op)} of the sparse {quoted(worst.sparse.node, 'tensor')}"
        message = f"{product} has no kernel for {dtype_name(operand, worst.low)} on {device}: it raises"
    elif short_name(worst.use.op) == "numpy":
        message = f"numpy has no bfloat16: .numpy() of {given} raises"
    elif worst.initialises:
        message = f"{short_name(worst.use.op)} has no kernel for {given}: a model made in that dtype raises"
    elif worst.last is not None:
        release = f"torch {worst.last[0]}.{worst.last[1]}"
        message = f"{short_name(worst.use.op)} has no kernel for {given} on {device} in {release}: it raises there"
    cited = worst.last is not None or worst.initialises
    return Suspect(
        span=span,
        node=span,
        message=message,
        scenarios=facts.names(lanes),
        standing=standing,
        severity=Severity.WARNING if cited else Severity.ERROR,
        causes=causes_of(facts, operand, worst.lanes),
        data=worst,
        of_weights=not worst.of_handed_weights,
    )


def _fix(node: cst.Call, refusal: Refusal, visit: Visit) -> Fix | None:
    """The operation in float32, and its result in the operand's dtype again."""
    if refusal.of_complex:  # its transform raises before in most sizes
        return None
    if refusal.sparse is not None:
        return sparse_product_fix(node, refusal, visit)
    if refusal.initialises:
        return _initialised(node, refusal, visit)
    edits = []
    for operand in refusal.operands:
        expression = find_operand(visit, node, operand)
        if expression is None:
            return None
        edits.append(visit.append(expression, ".float()"))
    leader = refusal.operands[0].node
    if leader is not None and refusal.gives_one_tensor(visit.facts):
        dtype, imports = result_dtype(visit, leader)
        edits += [*imports, visit.append(node, f".to({dtype})")] if dtype is not None else []
    elif leader is not None and short_name(refusal.use.op) in _FACTORS:
        edits += cast_unpacked(node, dtype_of_tensor(leader), visit)
    return visit.fix(Applicability.UNSAFE, "Compute it in float32", *edits)


def _initialised(node: cst.Call, refusal: Refusal, visit: Visit) -> Fix | None:
    """What initialises in place fills a float32 copy, which the tensor takes over; a float32 tensor is its own copy."""
    import libcst as cst

    tensor = refusal.operands[0].node
    expression = find_operand(visit, node, refusal.operands[0])
    if tensor is None or expression is None or not is_stable(tensor) or not isinstance(visit.parent(node), cst.Expr):
        return None
    written = visit.code(expression)
    data = written if written.endswith(".data") else f"{written}.data"
    start, end = visit.span(node).start, visit.span(node).end
    edits = (
        Edit(Span(start, start), f"{data}.copy_("),
        visit.replace(expression, f"{data}.float()"),
        Edit(Span(end, end), ")"),
    )
    return visit.fix(Applicability.UNSAFE, "Initialise it in float32", *edits)
