"""AMP109: casts to a 16-bit dtype that is spelled out."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, ClassVar

from amplint.finding import Applicability, Cause, Certainty, Severity
from amplint.infer.dtypes import BFLOAT16, BOOL, FLOAT16, INTEGERS, names_of
from amplint.rule import TENSOR_CODE, Example, Rule, Suspect

from ._blanket_casts import BlanketCast, blanket_casts
from ._receivers import is_tensor, place
from ._surroundings import Surroundings

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.infer.facts import CastCall, FileFacts
    from amplint.visit import Visit

_WORDS = {FLOAT16: re.compile(r"fp_?16|(?<!b)float_?16|half|f16"), BFLOAT16: re.compile(r"bf_?16|bfloat_?16")}
_OTHER = {FLOAT16: BFLOAT16, BFLOAT16: FLOAT16}
_ON_PURPOSE = re.compile(r"fp_?16|float_?16|half|bf_?16|bfloat|quant|compress|pack|precision|dtype|autocast|export")
"""What a function calls itself that is there to cast."""


class HardcodedLowPrecision(Rule):
    """A tensor is cast to float16 or bfloat16 by name, whatever 16-bit dtype the model runs in.

    What it does
    ------------
    Reports `.half()`, `.bfloat16()`, `.to(torch.float16)` and `.type(torch.HalfTensor)` on tensors in a scenario whose
    16-bit dtype is the other one, where no test asks for that dtype; and casts of everything in a state dict, in a
    dict of tensors or among a module's buffers to a floating dtype, where integers and masks are not left out. Of
    several casts in one block the first is reported.

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
    state = {name: value.half() for name, value in state.items()}
    ```
    Use instead:
    ```python
    if dtype in (torch.float16, torch.bfloat16):
        cos, sin = cos.to(dtype), sin.to(dtype)
    state = {name: value.half() if value.is_floating_point() else value for name, value in state.items()}
    ```

    Fix safety
    ----------
    A cast of a whole dict or of all buffers gets a test for floating tensors; unsafe, since the others then keep their
    dtype. The other casts have no fix: which tensor's dtype was meant is not to be seen.
    """

    code: ClassVar[str] = "AMP109"
    name: ClassVar[str] = "hardcoded-low-precision"
    severity: ClassVar[Severity] = Severity.WARNING
    default: ClassVar[bool] = False
    tokens: ClassVar[tuple[str, ...]] = (
        ".half(",
        ".bfloat16(",
        "float16",
        "torch.half",
        "HalfTensor",
        "buffers(",
        "state_dict(",
    )
    context: ClassVar[tuple[str, ...]] = TENSOR_CODE
    claims_failure: ClassVar[bool] = False
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Quantized(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.register_buffer("codes", torch.ones(dim, dtype=torch.uint8))

    def forward(self, x: torch.Tensor):
        low = x.to(torch.float16)  # expect
        return (low * self.codes).to(x.dtype)


def reproduce():
    x = torch.full((2, 8), 1e5, dtype=torch.bfloat16)
    assert Quantized()(x).isfinite().all()
""",
            scenario="bf16",
        ),
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
        Example(
            """\
import torch
from torch import nn


def cast_buffers(module: nn.Module, dtype: torch.dtype):
    for name, buffer in module.named_buffers(recurse=False):
        if buffer is not None:
            setattr(module, name, buffer.to(dtype=dtype))  # expect


def reproduce():
    norm = nn.BatchNorm1d(2)
    cast_buffers(norm, torch.bfloat16)
    assert norm.num_batches_tracked.dtype == torch.int64
""",
            scenario="bf16",
        ),
        Example(
            """\
import torch
from torch import nn


def load(model: nn.Module, path: str):
    state = torch.load(path)
    state["model"] = {name: value.half() for name, value in state["model"].items()}  # expect
    return state


def reproduce():
    from unittest import mock

    with mock.patch("torch.load", lambda path: {"model": nn.BatchNorm1d(2).state_dict()}):
        state = load(nn.BatchNorm1d(2), "model.pt")
    assert state["model"]["num_batches_tracked"].dtype == torch.int64
""",
            scenario="fp16",
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

    def convert_to_fp16(self, x: torch.Tensor):
        self.proj.half()
        return x.half()

    def forward(self, x: torch.Tensor, dtype: torch.dtype):
        if self.use_fp16:
            x = x.half()
        y = x.half() if dtype == torch.float16 else x.to(dtype)
        return y.float()


def cast_state(module: nn.Module, dtype: torch.dtype):
    for name, buffer in module.named_buffers():
        if buffer.is_floating_point():
            buffer.data = buffer.to(dtype)
    moved = {name: value.to("cuda") for name, value in module.state_dict().items()}
    return {name: value.half() if value.is_floating_point() else value for name, value in moved.items()}
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        around = Surroundings(facts.source.tree)
        for blanket in blanket_casts(facts.source.tree, around):
            span = facts.span(blanket.cast)
            yield Suspect(
                span=span,
                node=span,
                message=f"everything in `{ast.unparse(blanket.source)}` is cast, integers and masks too",
                scenarios=facts.all_scenarios(),
                certainty=Certainty.LIKELY,
                causes=(Cause(facts.path, facts.span(blanket.source), "not only floating tensors are in here"),),
                data=blanket,
            )
        spoken = set()
        for cast in sorted(facts.casts, key=lambda cast: facts.span(cast.node)):
            lanes = _wrong_lanes(facts, cast)
            if not lanes or not (is_tensor(cast) or _in_forward(around, cast)) or _is_asked_for(around, cast):
                continue
            low = names_of(cast.dtypes[0].mask)[0]
            meant = names_of(_OTHER[cast.dtypes[0].mask])[0]
            if (around.block(cast.node), low) in spoken:
                continue
            spoken.add((around.block(cast.node), low))
            yield Suspect(
                span=place(facts, cast.node),
                node=facts.span(cast.node),
                message=f"the cast to {low} is fixed, and the model may run in {meant}"
                + (": what is cast are integers" if _is_integral(cast, lanes[0]) else ""),
                scenarios=facts.names(lanes),
                certainty=Certainty.LIKELY,
            )

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        if not isinstance(suspect.data, BlanketCast):
            visit.report(suspect)
            return
        name, text = suspect.data.name, visit.code(node)
        edit = visit.replace(node, f"({text} if {name}.is_floating_point() else {name})")
        visit.report(suspect, visit.fix(Applicability.UNSAFE, "Leave integers and masks as they are", edit))


def _wrong_lanes(facts: FileFacts, cast: CastCall) -> list[int]:
    """The scenarios whose 16-bit dtype is not the one that the code names."""
    masks = {lane.mask for lane in cast.dtypes}
    if not cast.written or cast.discarded or masks not in ({FLOAT16}, {BFLOAT16}):
        return []
    (mask,) = masks
    other = names_of(_OTHER[mask])[0]
    lanes = []
    for number, scenario in enumerate(facts.scenarios):
        runs_other = other in (scenario.parameters, scenario.autocast)
        before = cast.tensor.dtypes[number]
        if runs_other and cast.live >> number & 1 and before.mask != mask:
            lanes.append(number)
    return lanes


def _is_integral(cast: CastCall, lane: int) -> bool:
    before = cast.tensor.dtypes[lane]
    return before.known and not before.mask & ~(INTEGERS | BOOL)


def _in_forward(around: Surroundings, cast: CastCall) -> bool:
    """Whether a variable is cast in a module's forward pass, where variables are tensors."""
    function = around.function(cast.node)
    assert isinstance(cast.node.func, ast.Attribute)
    return function is not None and "forward" in function.name and isinstance(cast.node.func.value, ast.Name)


def _is_asked_for(around: Surroundings, cast: CastCall) -> bool:
    """Whether a test asks for the dtype, or the code around says by its name that it is there to cast."""
    (mask,) = {lane.mask for lane in cast.dtypes}

    def asks(test: ast.expr) -> bool:
        text = ast.unparse(test).lower()
        if _WORDS[mask].search(text):
            return not _WORDS[_OTHER[mask]].search(text)
        return bool(re.search(r"dtype|precision|amp\b", text)) and "float32" not in text and "bf" not in text

    names = [a.name for a in around.ancestors(cast.node) if isinstance(a, ast.FunctionDef)]
    asked = any(answer and asks(test) for test, answer in around.tests(cast.node))
    return asked or any(_ON_PURPOSE.search(name.lower()) for name in names)
