"""AMP109: casts to a 16-bit dtype that is spelled out."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, ClassVar

from amplint.finding import Applicability, Cause, Severity
from amplint.infer.dtypes import BITS, BOOL, INTEGERS
from amplint.judge import doubts
from amplint.judge.certainty import ASSUMED, holding
from amplint.rule import TENSOR_CODE, Example, Rule, Suspect

from ._asked_for import OTHER, asks, mentioned, names_both, tests_of
from ._blanket_casts import BlanketCast, blanket_casts
from ._harmless_halves import harmless_doubts
from ._named_half import NamedHalf, named_halves
from ._receivers import is_tensor, place, shows_tensor
from ._surroundings import Surroundings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import libcst as cst

    from amplint.infer.facts import CastCall, FileFacts
    from amplint.judge.certainty import Standing
    from amplint.visit import Visit

_STORED = ("items", "values", "parameters", "named_parameters", "buffers", "named_buffers")
_MASKS = {name: BITS[name] for name in OTHER}


class HardcodedLowPrecision(Rule):
    """A tensor gets float16 or bfloat16 by name, whatever 16-bit dtype the model runs in.

    What it does
    ------------
    Reports, in a scenario whose 16-bit dtype is the other one,

    - `.half()`, `.bfloat16()`, `.to(torch.float16)` and `.type(torch.HalfTensor)` on tensors, and tensors made with
      such a dtype in a shape that is computed, where no test asks for that dtype or for an option;
    - casts to one of them under a test that lets both through;
    - casts of everything in a state dict, in a dict or nest of tensors, or among a module's buffers to a floating
      dtype, where integers and masks are not left out.

    Of several in one block the first is reported. Files that define kernels are left alone.

    With `--pedantic` also where nothing shows a loss: casts of masks, and of what a function of another package takes,
    which may take that dtype alone; to float16 where autocast is on, whose layers
    cast again, or for an attention whose result is cast back; to bfloat16 of what holds an exponential, for its range,
    or of what the function makes in float32 whatever the model runs in; and in functions that no
    module runs and that get no tensor to cast, such as scripts and tests.

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
    dtype. The others have no fix: which tensor's dtype was meant is not to be seen.
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
        rounded = y.half().to(y.dtype)
        buffer = torch.empty(x.shape, dtype=torch.float16 if dtype == torch.float16 else x.dtype)
        return rounded.float(), buffer


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
        around = Surroundings.of(facts.source.tree)
        yield from _blankets(facts, around)
        casts = {id(cast.node): cast for cast in facts.casts}
        spoken: set[tuple[int, str, int]] = set()
        for half in sorted(named_halves(facts, around), key=lambda half: facts.span(half.node)):
            cast = casts.get(id(half.node))
            claim = _claim(facts, around, half, cast)
            if claim is None:
                continue
            message, lanes, causes, standing = claim
            stored = half.receiver is not None and _is_of_state(around, half.node)
            asked = {
                doubts.ROUNDED_AT_ONCE: _is_rounding(around, half.node),
                doubts.STORED: stored,
                doubts.OF_NO_MODEL: not _is_of_model(facts, half, cast),
            }
            standing = standing.doubted(*holding(asked))
            block = (around.block(half.node), half.dtype, standing.rank)
            if block in spoken:
                continue
            spoken.add(block)
            yield Suspect(
                span=place(facts, half.node),
                node=facts.span(half.node),
                message=message,
                scenarios=facts.names(lanes),
                standing=standing,
                causes=causes,
            )

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        if not isinstance(suspect.data, BlanketCast):
            visit.report(suspect)
            return
        name, text = suspect.data.name, visit.code(node)
        edit = visit.replace(node, f"({text} if {name}.is_floating_point() else {name})")
        visit.report(suspect, visit.fix(Applicability.UNSAFE, "Leave integers and masks as they are", edit))


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


def _claim(
    facts: FileFacts, around: Surroundings, half: NamedHalf, cast: CastCall | None
) -> tuple[str, list[int], tuple[Cause, ...], Standing] | None:
    """What is wrong with a named dtype, in which scenarios, why, and how that stands; None where nothing is."""
    tests = list(tests_of(around, half.node))
    asked = any(asks(test, answer, half.dtype, around) for test, answer in tests)
    if half.choice is not None:
        asked = asked or asks(*half.choice, half.dtype, around, options=False)
        tests.append(half.choice)
    asked = asked or any(answer and _is_of_float32(test, around) for test, answer in tests)
    standing = ASSUMED.doubted(doubts.ASKED_FOR) if asked else ASSUMED
    lanes = _wrong_lanes(facts, half, cast)
    if any(names_both(test, answer, around) for test, answer in tests):
        message = f"float16 and bfloat16 come here alike, and both become {half.dtype}"
        return message, lanes or _other_lanes(facts, half), (), standing
    if not lanes or not _is_of_tensor(around, half, cast):
        return None
    meant = OTHER[half.dtype]
    if half.receiver is None:
        return f"this is made in {half.dtype}, and the model may run in {meant}", lanes, (), standing
    standing = standing.doubted(*harmless_doubts(facts, around, half, cast, tests))
    integral = ": what is cast are integers" if cast is not None and _is_integral(cast, lanes[0]) else ""
    return f"the cast to {half.dtype} is fixed, and the model may run in {meant}{integral}", lanes, (), standing


def _is_of_float32(test: ast.expr, around: Surroundings) -> bool:
    """``x.dtype == torch.float32``: what is in 16 bit keeps its own dtype, and for the rest one is as good."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    return around.is_dtype(test.left) and mentioned(test, around) == {"float32"}


def _is_of_model(facts: FileFacts, half: NamedHalf, cast: CastCall | None) -> bool:
    """Whether a module runs this, or a caller passes what is cast or something that it is computed from."""
    row = half.node.lineno
    if (cast is not None and cast.in_module) or facts.in_module(row) or facts.runs_on_weights(row):
        return True
    pending = [cast.tensor.origin] if cast is not None else []
    while pending:
        origin = pending.pop()
        if origin is not None and isinstance(origin.node, ast.arg):
            return True
        pending += origin.parents if origin is not None else ()
    return False


def _is_rounding(around: Surroundings, node: ast.Call) -> bool:
    """``x.half().float()``: the result has another dtype again at once."""
    parent = around.parent(node)
    return isinstance(parent, ast.Attribute) and parent.attr in ("float", "double", "to", "type", "type_as")


def _other_lanes(facts: FileFacts, half: NamedHalf) -> list[int]:
    """The scenarios whose 16-bit dtype is not the one that the code names."""
    other = OTHER[half.dtype]
    return [number for number, s in enumerate(facts.scenarios) if other in (s.parameters, s.autocast)]


def _wrong_lanes(facts: FileFacts, half: NamedHalf, cast: CastCall | None) -> list[int]:
    """Those in which the code runs with a tensor that does not have the named dtype already."""
    lanes = _other_lanes(facts, half)
    if cast is None:
        return lanes
    mask = _MASKS[half.dtype]
    if cast.discarded or any(lane.mask != mask for lane in cast.dtypes):
        return []
    return [n for n in lanes if cast.live >> n & 1 and cast.tensor.dtypes[n].mask != mask]


def _is_integral(cast: CastCall, lane: int) -> bool:
    before = cast.tensor.dtypes[lane]
    return before.known and not before.mask & ~(INTEGERS | BOOL)


def _is_of_tensor(around: Surroundings, half: NamedHalf, cast: CastCall | None) -> bool:
    """Whether it is a tensor that gets the dtype, in code that a model runs."""
    function = around.function(half.node)
    if function is None:
        return False
    if half.receiver is None or (cast is not None and is_tensor(cast)) or shows_tensor(around, half.node):
        return True
    return function.name == "forward" and isinstance(half.receiver, ast.Name)


def _is_of_state(around: Surroundings, node: ast.Call) -> bool:
    """Whether what is cast is one of a dict's or a module's tensors: those are stored, not computed with."""
    assert isinstance(node.func, ast.Attribute)
    name = node.func.value.id if isinstance(node.func.value, ast.Name) else None
    for ancestor in around.ancestors(node):
        loops: list[tuple[ast.expr, ast.expr]] = []
        if isinstance(ancestor, (ast.For, ast.AsyncFor)):
            loops = [(ancestor.target, ancestor.iter)]
        elif isinstance(ancestor, (ast.DictComp, ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            loops = [(generator.target, generator.iter) for generator in ancestor.generators]
        for target, source in loops:
            held = any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(target))
            if held and isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute):
                return source.func.attr in _STORED
    return False
