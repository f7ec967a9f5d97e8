"""AMP501: precision settings in Python calls that contradict each other or the model's dtype."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.precision_names import ALIASES, short_names_alone
from amplint.finding import Applicability, Cause, Edit, Severity
from amplint.judge.certainty import ASSUMED
from amplint.rule import Evidence, Example, Rule, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import libcst as cst

    from amplint.infer.facts import FileFacts
    from amplint.infer.training.program import Place, Program, Scope
    from amplint.source import Span
    from amplint.visit import Visit

_PAIRS = (("fp16", "bf16"), ("fp16_full_eval", "bf16_full_eval"))
_BITS = {"float16": 16, "half": 16, "bfloat16": 16, "float32": 32, "float": 32, "float64": 64, "double": 64}
_ADAPTERS = frozenset(("requires_grad", "requires_grad_", "add_adapter", "load_adapter", "load_lora_weights", "peft"))
"""Attributes and a package that say that the loaded weights may not be what is trained."""

_Found = tuple[ast.expr, str, tuple[str, ...], tuple[Cause, ...], ast.expr | None]


class PrecisionConflict(Rule):
    """A call asks for two precisions at once, or for one that the model it is given does not have.

    What it does
    ------------
    Reports `fp16=True` beside `bf16=True` in one call, and both enabled in one configuration dict; torch's FSDP
    `MixedPrecision` whose buffers are in 16 bit while its parameters stay in float32, also where the branches of an
    `if` choose the dtypes; and a model loaded in float16 that goes, without adapters, to a trainer whose arguments say
    `fp16=True` or `bf16=True`, or to an Accelerator of `mixed_precision="fp16"`. And a test of Lightning's precision
    for `16`, `"16"` or `"bf16"` in a file that nowhere has a long name such as `"16-mixed"` or a name of its own.
    `amplint preflight` reads YAML and JSON configurations too, and holds settings against the hardware.

    Why it is bad
    -------------
    The two precisions exclude each other and the framework raises, after the model was loaded. Buffers in 16 bit meet
    float32 parameters in the first norm. Mixed precision needs float32 weights: a scaler refuses the gradients of
    float16 ones. Lightning 2 calls mixed precision `"16-mixed"` and `"bf16-mixed"` and takes the short names as well,
    so what a test for `"16"` was to switch on stays off.

    How it shows
    ------------
    ```text
    ValueError: At most one of fp16 and bf16 can be True, but not both
    ValueError: Attempting to unscale FP16 gradients.
    ```

    Example
    -------
    ```python
    arguments = TrainingArguments("out", fp16=True, bf16=True)
    ```
    Use instead:
    ```python
    arguments = TrainingArguments("out", bf16=True)
    ```

    Fix safety
    ----------
    Unsafe: of `fp16=True, bf16=True` the fix keeps bf16, which GPUs before compute capability 8.0 compute slowly or not
    at all. A comparison with one short name becomes one with both. The others have no fix, since the model's loading
    and its trainer are both the author's choice.
    """

    code: ClassVar[str] = "AMP501"
    name: ClassVar[str] = "precision-conflict"
    severity: ClassVar[Severity] = Severity.WARNING
    evidence: ClassVar[Evidence] = Evidence.CITED
    of_weights = False
    tokens: ClassVar[tuple[str, ...]] = (
        *("fp16=True", "fp16 = True", "fp16_full_eval", '"fp16"', "'fp16'", "MixedPrecision", "mixed_precision="),
        *(f"precision{end}" for end in (" == ", ") == ", " != ", ") != ", " in ", ") in ", " not in ", ") not in ")),
    )
    context: ClassVar[tuple[str, ...]] = ("bf16", "bfloat16", "from_pretrained", "MixedPrecision", "lightning")
    claims_failure = False
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
from transformers import TrainingArguments

arguments = TrainingArguments("out", fp16=True, bf16=True)  # expect
config = {"fp16": {"enabled": True}, "bf16": {"enabled": True}}  # expect
""",
            scenario="autocast-fp16",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch.distributed.fsdp import MixedPrecision
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

config = {"fp16": {"enabled": False}, "bf16": {"enabled": True}}
precise_reduction = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32, buffer_dtype=torch.float32)
compressed = MixedPrecision(param_dtype=torch.float32, reduce_dtype=torch.bfloat16)


def compare(fp16, bf16):
    return fp16 != bf16


both = compare(fp16=True, bf16=True)


def train(dataset, half):
    model = AutoModelForCausalLM.from_pretrained("gpt2", torch_dtype=torch.float32)
    teacher = AutoModelForCausalLM.from_pretrained("gpt2", torch_dtype=torch.float16)
    arguments = TrainingArguments("out", fp16=half, bf16=not half)
    return teacher, Trainer(model=model, args=arguments, train_dataset=dataset)
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        program = facts.training.program
        found: list[_Found] = []
        for node in ast.walk(facts.source.tree):
            if isinstance(node, ast.Dict):
                found += _both_in_dict(facts, node)
        for scope in program.scopes:
            for call in scope.calls:
                if program.callee(call, scope) is None:
                    found += _both(facts, call)
                found += _fsdp(facts, call, scope)
        found += _half_model(facts)
        for test, short in short_names_alone(facts):
            message = f"tests for {short!r} alone, which Lightning 2 calls {ALIASES[short]!r}: test for both"
            found.append((test, message, ("autocast-bf16" if short == "bf16" else "autocast-fp16",), (), None))
        named = facts.all_scenarios()
        for node, message, wanted, causes, extra in found:
            scenarios = tuple(name for name in named if name in wanted)
            if scenarios:
                span = facts.span(node)
                removed = facts.span(extra) if extra is not None else None
                yield Suspect(span, span, message, scenarios, ASSUMED, causes, data=removed)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        removed: Span | None = suspect.data
        argument = next((a for a in node.args if removed is not None and visit.span(a.value) == removed), None)
        if argument is None:
            visit.report(suspect)
            return
        edit: Edit = visit.delete(argument)
        visit.report(suspect, visit.fix(Applicability.UNSAFE, "Keep bf16 alone", edit))

    def visit_Comparison(self, node: cst.Comparison, suspect: Suspect, visit: Visit) -> None:
        import libcst as cst

        operator, value = node.comparisons[0].operator, node.comparisons[0].comparator
        words = "in" if isinstance(operator, cst.Equal) else "not in" if isinstance(operator, cst.NotEqual) else None
        if words is None or not isinstance(value, cst.SimpleString | cst.Integer):
            visit.report(suspect)
            return
        long = ALIASES[ast.literal_eval(visit.code(value))]
        both = f'{visit.code(node.left)} {words} ({visit.code(value)}, "{long}")'
        visit.report(suspect, visit.fix(Applicability.UNSAFE, "Test for both names", visit.replace(node, both)))


_MIXED = ("autocast-fp16", "autocast-bf16")


def _both(facts: FileFacts, call: ast.Call) -> Iterator[_Found]:
    """``fp16=True`` and ``bf16=True`` in one call."""
    given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    for half, brain in _PAIRS:
        if _is_true(given.get(half)) and _is_true(given.get(brain)):
            message = f"{half}=True and {brain}=True exclude each other: leave one on"
            yield call, message, _MIXED, (), given[half]


def _both_in_dict(facts: FileFacts, node: ast.Dict) -> Iterator[_Found]:
    """``{"fp16": {"enabled": True}, "bf16": {"enabled": True}}``."""
    pairs = zip(node.keys, node.values, strict=True)
    entries = {key.value: value for key, value in pairs if isinstance(key, ast.Constant)}
    half, brain = entries.get("fp16"), entries.get("bf16", entries.get("bfloat16"))
    if _enabled(half) and _enabled(brain):
        yield node, "fp16 and bf16 are both enabled and exclude each other: leave one on", _MIXED, (), None


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _enabled(node: ast.expr | None) -> bool:
    if not isinstance(node, ast.Dict):
        return False
    entries = zip(node.keys, node.values, strict=True)
    return any(isinstance(k, ast.Constant) and k.value == "enabled" and _is_true(v) for k, v in entries)


def _fsdp(facts: FileFacts, call: ast.Call, scope: Scope) -> Iterator[_Found]:
    """FSDP's settings with buffers in fewer bits than the parameters, as written or as a branch before it chooses."""
    program = facts.training.program
    name = program.name(call.func) or ""
    if not (name.startswith("torch.distributed.") and name.endswith(".MixedPrecision")):
        return
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    parameter, buffer = given.get("param_dtype"), given.get("buffer_dtype")
    if parameter is None or buffer is None:
        return
    written = _dtype(parameter, program) is not None or _dtype(buffer, program) is not None
    pairs = [(call, parameter, buffer)] if written else _choices(parameter, buffer, call, scope)
    for node, first, second in pairs:
        wide, narrow = _dtype(first, program), _dtype(second, program)
        if wide is not None and narrow is not None and _BITS[wide] > _BITS[narrow]:
            message = f"keeps parameters in {wide} but buffers in {narrow}, which meet in the first norm: use one dtype"
            causes: tuple[Cause, ...] = (Cause(facts.path, facts.span(second), f"{narrow}: the buffers"),)
            if node is not call:
                causes += (Cause(facts.path, facts.span(call), "FSDP gets both here"),)
            yield node, message, ("fsdp-bf16", *_MIXED), causes, None


def _choices(
    parameter: ast.expr, buffer: ast.expr, call: ast.Call, scope: Scope
) -> Iterator[tuple[ast.expr, ast.expr, ast.expr]]:
    """Where the two dtypes are chosen together: at the call, or in one block of statements before it."""
    if not isinstance(parameter, ast.Name) or not isinstance(buffer, ast.Name):
        yield call, parameter, buffer
        return
    for block in _blocks(scope.node):
        values: dict[str, ast.expr] = {}
        for statement in block:
            if isinstance(statement, ast.Assign):
                names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
                values.update(dict.fromkeys(names, statement.value))
        if parameter.id in values and buffer.id in values:
            yield values[parameter.id], values[parameter.id], values[buffer.id]


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for inner in ast.walk(node):
        for name in ("body", "orelse"):
            block = getattr(inner, name, None)
            if isinstance(block, list):
                yield block


def _dtype(node: ast.expr, program: Program) -> str | None:
    name = program.name(node)
    last = name.removeprefix("torch.") if name is not None and name.startswith("torch.") else None
    return last if last in _BITS else None


def _adapts(node: ast.AST) -> bool:
    """Whether a node imports adapters, or freezes weights."""
    if isinstance(node, ast.ImportFrom) and not node.level:
        return (node.module or "").partition(".")[0] in _ADAPTERS
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] in _ADAPTERS for alias in node.names)
    return isinstance(node, ast.Attribute) and node.attr in _ADAPTERS


def _half_model(facts: FileFacts) -> Iterator[_Found]:
    """A call that gets both a model loaded in float16 and arguments that ask for mixed precision."""
    if any(_adapts(node) for node in ast.walk(facts.source.tree)):
        return
    program = facts.training.program
    models: dict[Place, ast.Call] = {}
    settings: dict[Place, tuple[ast.Call, str]] = {}
    for scope in program.scopes:
        for target, value in scope.assignments:
            place = program.place(target, scope)
            if place is None or not isinstance(value, ast.Call):
                continue
            given = {keyword.arg: keyword.value for keyword in value.keywords}
            loads = isinstance(value.func, ast.Attribute) and value.func.attr == "from_pretrained"
            dtype = given.get("torch_dtype", given.get("dtype"))
            if loads and dtype is not None and _dtype(dtype, program) in ("float16", "half"):
                models[place] = value
            which = next((key for key in ("fp16", "bf16") if _is_true(given.get(key))), None)
            mixed = given.get("mixed_precision")
            if which is None and isinstance(mixed, ast.Constant) and mixed.value == "fp16":
                which = "fp16"
            if which is not None:
                settings[place] = value, which
    for scope in program.scopes:
        for call in scope.calls:
            receiver = [call.func.value] if isinstance(call.func, ast.Attribute) else []
            places = [program.place(a, scope) for a in (*receiver, *call.args, *(k.value for k in call.keywords))]
            model = next((models[p] for p in places if p is not None and p in models), None)
            found = next((settings[p] for p in places if p is not None and p in settings), None)
            if model is None or found is None:
                continue
            setting, which = found
            message = f"trains a model that was loaded in float16 with {which} mixed precision: load it in float32"
            causes = (
                Cause(facts.path, facts.span(model), "float16: loaded here"),
                Cause(facts.path, facts.span(setting), f"{which} mixed precision is asked for here"),
            )
            yield call, message, (f"autocast-{which}",), causes, None
