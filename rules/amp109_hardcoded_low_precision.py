"""AMP109: casts to a 16-bit dtype that is spelled out."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.asked_for_dtype import OTHER
from amplint.claims.blanket_casts import BlanketCast, blanket_casts
from amplint.claims.cast_receivers import place
from amplint.claims.fixed_halves import FixedHalf, fixed_halves
from amplint.claims.made_tensors import quoted
from amplint.claims.one_way_choices import always_true
from amplint.claims.surroundings import Surroundings
from amplint.rule import ASSUMED, FORCED, TENSOR_CODE, Applicability, Cause, Example, Rule, Severity, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import libcst as cst

    from amplint.rule import FileFacts, Visit


_DEVICE_AND_DTYPE = 2


class HardcodedLowPrecision(Rule):
    """A tensor gets float16 or bfloat16 by name, whatever 16-bit dtype the model runs in.

    What it does
    ------------
    Reports, in a scenario whose 16-bit dtype is the other one,

    - `.half()`, `.bfloat16()`, `.to(torch.float16)` and `.type(torch.HalfTensor)` on tensors, and tensors made with
      such a dtype in a shape that is computed, where no test asks for that dtype or for an option;
    - casts to one of them under a test that lets both through;
    - a test that asks for a dtype or chooses one and is always true, as `precision == "fp16" or "bf16"` is;
    - casts of everything in a state dict, in a nest of tensors, or among a module's buffers to a floating dtype, where
      integers and masks are not left out.

    Of several in one block the first is reported. Files that define kernels are left alone.

    The first are reported where the function returns what it casts or makes. With `--pedantic` also where it keeps
    that for itself or hands it to a kernel, and in functions that no module runs and that get no tensor to cast.

    Why it is bad
    -------------
    float16 ends at 65504 and bfloat16 has 8 bits: an activation of a bfloat16 model that goes through float16 becomes
    infinite where it is large, and one of a float16 model loses three bits in bfloat16. float16 and bfloat16 together
    promote to float32, or fail. An integer buffer that is cast with the rest (`num_batches_tracked`, indices, masks)
    counts to 2048 in float16 and to 256 in bfloat16, and no longer is an index at all.

    How it shows
    ------------
    ```text
    RuntimeError: expected m1 and m2 to have the same dtype, but got: c10::Half != c10::BFloat16
    RuntimeError: mat1 and mat2 must have the same dtype, but got BFloat16 and Half
    ```
    or as inf and nan, or not at all.

    Example
    -------
    ```python
    if dtype in (torch.float16, torch.bfloat16):
        cos, sin = cos.half(), sin.half()
    state = {name: value.half() for name, value in model.state_dict().items()}
    ```
    Use instead:
    ```python
    if dtype in (torch.float16, torch.bfloat16):
        cos, sin = cos.to(dtype), sin.to(dtype)
    state = {name: value.half() if value.is_floating_point() else value for name, value in model.state_dict().items()}
    ```

    Fix safety
    ----------
    A cast of a whole dict or of all buffers gets a test for floating tensors; unsafe, since the others then keep their
    dtype; where the cast moves them too, they still go to the device. The others have no fix: which tensor's dtype was
    meant is not to be seen.
    """

    code: ClassVar[str] = "AMP109"
    name: ClassVar[str] = "hardcoded-low-precision"
    severity: ClassVar[Severity] = Severity.WARNING
    of_weights = False
    tokens: ClassVar[tuple[str, ...]] = (
        ".half(",
        ".bfloat16(",
        "float16",
        "half",
        "HalfTensor",
        "buffers(",
        "state_dict(",
        "_apply(",
    )
    context: ClassVar[tuple[str, ...]] = TENSOR_CODE
    claims_failure: ClassVar[bool] = False
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.dim = dim

    def forward(self, q: torch.Tensor):
        rates = 1 / 10000 ** (torch.arange(self.dim, device=q.device) / self.dim)
        angles = torch.outer(torch.arange(q.shape[0], device=q.device), rates)
        cos, sin = angles.cos(), angles.sin()
        if q.dtype in (torch.float16, torch.bfloat16):
            cos, sin = cos.half(), sin.half()  # expect
        return q * cos + q.flip(-1) * sin


def reproduce():
    q = torch.randn(4, 8, dtype=torch.bfloat16)
    assert Rotary()(q).dtype == q.dtype
""",
            scenario="bf16",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, dim=8, use_fp16=False):
        super().__init__()
        self.use_fp16 = use_fp16
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor, dtype: torch.dtype):
        if self.use_fp16:
            x = x.half()
        y = x.half() if dtype == torch.float16 else x.to(dtype)
        narrow = dtype != torch.float32 and x.dtype == torch.bfloat16
        if narrow:
            y = y + x.float().erfinv().to(torch.bfloat16)
        buffer = torch.empty(x.shape, dtype=torch.float16 if dtype == torch.float16 else x.dtype)
        return y.float(), buffer


def cast_state(module: nn.Module, dtype: torch.dtype):
    for name, buffer in module.named_buffers():
        if buffer.is_floating_point():
            buffer.data = buffer.to(dtype)
    return {name: value.to("cuda") for name, value in module.state_dict().items()}
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        around = Surroundings.of(facts.source.tree)
        yield from _blankets(facts, around)
        for test, part in always_true(facts):
            message = f"`{ast.unparse(part)}` is always true here, so this chooses one dtype: compare each part"
            span = facts.span(test)
            yield Suspect(span, span, message, facts.all_scenarios(), FORCED, of_weights=False)
        for found in fixed_halves(facts, around):
            node = found.half.node
            yield Suspect(
                place(facts, node), facts.span(node), _message(found), facts.names(found.lanes), found.standing
            )

    def visit_BooleanOperation(self, node: cst.BooleanOperation, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        if not isinstance(suspect.data, BlanketCast):
            visit.report(suspect)
            return
        name, text, rest = suspect.data.name, visit.code(node), _other_arguments(node, visit)
        if rest is None:
            visit.report(suspect)
            return
        other = f"{name}.to({', '.join(rest)})" if rest else name
        edit = visit.replace(node, f"({text} if {name}.is_floating_point() else {other})")
        visit.report(suspect, visit.fix(Applicability.UNSAFE, "Leave integers and masks as they are", edit))


def _other_arguments(node: cst.Call, visit: Visit) -> list[str] | None:
    """What a cast is given besides its dtype, such as a device; None where the dtype's position is not clear."""
    keywords = [a for a in node.args if a.keyword is not None and a.keyword.value != "dtype"]
    positional = [a for a in node.args if a.keyword is None]
    if visit.argument(node, "dtype") is None and positional:
        is_flag = visit.code(positional[-1].value) in ("True", "False")
        if is_flag or len(positional) > _DEVICE_AND_DTYPE or any(a.star for a in node.args):
            return None
        positional = positional[:-1]
    return [visit.source.segment(visit.span(a.value)) for a in positional] + [
        f"{a.keyword.value}={visit.code(a.value)}" for a in keywords if a.keyword is not None
    ]


def _message(found: FixedHalf) -> str:
    dtype, meant = found.half.dtype, OTHER[found.half.dtype]
    if found.alike:
        return f"float16 and bfloat16 tensors come here alike, and both become {dtype}"
    if found.half.receiver is None:
        return f"this tensor is made in {dtype} also where the model runs in {meant}"
    what = quoted(found.half.receiver) or "the tensor"
    return f"{what} becomes {dtype} also where the model runs in {meant}: cast to the dtype of the model's tensors"


def _blankets(facts: FileFacts, around: Surroundings) -> Iterator[Suspect]:
    for blanket in blanket_casts(facts.source.tree, around):
        span = facts.span(blanket.cast)
        yield Suspect(
            span=span,
            node=span,
            message=f"everything in `{ast.unparse(blanket.source)}` is cast, integers and masks too",
            scenarios=facts.all_scenarios(),
            standing=ASSUMED,
            causes=(Cause(facts.path, facts.span(blanket.source), "not only floating tensors are in here"),),
            data=blanket,
        )
