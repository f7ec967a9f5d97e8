"""Precision settings in Python that contradict each other, or the dtype of a model."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.finding import Cause
from amplint.frozen import dataclass
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.flow.training.program import Place, Program, Scope
    from amplint.infer.state.facts import FileFacts

_PAIRS = (("fp16", "bf16"), ("fp16_full_eval", "bf16_full_eval"))
_BITS = {"float16": 16, "half": 16, "bfloat16": 16, "float32": 32, "float": 32, "float64": 64, "double": 64}
_ADAPTERS = frozenset(("requires_grad", "requires_grad_", "add_adapter", "load_adapter", "load_lora_weights", "peft"))
"""Attributes and a package that say that the loaded weights may not be what is trained."""
_MIXED = ("autocast-fp16", "autocast-bf16")


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Settings that cannot be meant together: where, what to say, in which scenarios, and the one that may go."""

    node: ast.expr
    message: str
    scenarios: tuple[str, ...]
    causes: tuple[Cause, ...] = ()
    extra: ast.expr | None = None


def _both(call: ast.Call) -> Iterator[Contradiction]:
    """``fp16=True`` and ``bf16=True`` in one call."""
    given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    for half, brain in _PAIRS:
        if _is_true(given.get(half)) and _is_true(given.get(brain)):
            message = f"{half}=True and {brain}=True exclude each other: leave one on"
            yield Contradiction(call, message, _MIXED, extra=given[half])


def _both_in_dict(node: ast.Dict) -> Iterator[Contradiction]:
    """``{"fp16": {"enabled": True}, "bf16": {"enabled": True}}``."""
    pairs = zip(node.keys, node.values, strict=True)
    entries = {key.value: value for key, value in pairs if isinstance(key, ast.Constant)}
    half, brain = entries.get("fp16"), entries.get("bf16", entries.get("bfloat16"))
    if _enabled(half) and _enabled(brain):
        yield Contradiction(node, "fp16 and bf16 are both enabled and exclude each other: leave one on", _MIXED)


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _enabled(node: ast.expr | None) -> bool:
    if not isinstance(node, ast.Dict):
        return False
    entries = zip(node.keys, node.values, strict=True)
    return any(isinstance(k, ast.Constant) and k.value == "enabled" and _is_true(v) for k, v in entries)


def _fsdp(facts: FileFacts, call: ast.Call, scope: Scope) -> Iterator[Contradiction]:
    """FSDP's settings with buffers in fewer bits than the parameters, as written or as a branch before it chooses."""
    program = facts.training.program
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    parameter, buffer = given.get("param_dtype"), given.get("buffer_dtype")
    if parameter is None or buffer is None:
        return
    name = program.name(call.func) or ""
    if not (name.startswith("torch.distributed.") and name.endswith(".MixedPrecision")):
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
            yield Contradiction(node, message, ("fsdp-bf16", *_MIXED), causes)


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


def _half_model(facts: FileFacts) -> Iterator[Contradiction]:
    """A call that gets both a model loaded in 16 bit and arguments that ask for mixed precision.

    Mixed precision in float16 scales the loss, and no gradients in 16 bit can be unscaled on CUDA; of a bfloat16 model,
    bf16 mixed precision computes as it would without.
    """
    if any(map(_adapts, nodes_of_kind(facts.source.tree, ast.ImportFrom, ast.Import, ast.Attribute))):
        return
    program = facts.training.program
    models: dict[Place, tuple[ast.Call, str]] = {}
    settings: dict[Place, tuple[ast.Call, str]] = {}
    for scope in program.scopes:
        for target, value in scope.assignments:
            if not isinstance(value, ast.Call) or not value.keywords:
                continue
            place = program.place(target, scope)
            if place is None:
                continue
            given = {keyword.arg: keyword.value for keyword in value.keywords}
            loads = isinstance(value.func, ast.Attribute) and value.func.attr == "from_pretrained"
            asked = given.get("torch_dtype", given.get("dtype"))
            loaded = _dtype(asked, program) if loads and asked is not None else None
            if loaded is not None and _BITS[loaded] == 16:
                models[place] = value, "bfloat16" if loaded == "bfloat16" else "float16"
            which = next((key for key in ("fp16", "bf16") if _is_true(given.get(key))), None)
            mixed = given.get("mixed_precision")
            if which is None and isinstance(mixed, ast.Constant) and mixed.value == "fp16":
                which = "fp16"
            if which is not None:
                settings[place] = value, which
    for scope in program.scopes if models and settings else ():
        for call in scope.calls:
            receiver = [call.func.value] if isinstance(call.func, ast.Attribute) else []
            places = [program.place(a, scope) for a in (*receiver, *call.args, *(k.value for k in call.keywords))]
            trained = next((models[p] for p in places if p is not None and p in models), None)
            found = next((settings[p] for p in places if p is not None and p in settings), None)
            if trained is None or found is None:
                continue
            (model, dtype), (setting, which) = trained, found
            if dtype == "bfloat16" and which == "bf16":
                continue
            message = f"trains a model that was loaded in {dtype} with {which} mixed precision: load it in float32"
            if dtype == "bfloat16":
                message += ", or ask for bf16"
            causes = (
                Cause(facts.path, facts.span(model), f"{dtype}: loaded here"),
                Cause(facts.path, facts.span(setting), f"{which} mixed precision is asked for here"),
            )
            yield Contradiction(call, message, (f"autocast-{which}",), causes)


def contradictions(facts: FileFacts) -> Iterator[Contradiction]:
    """The settings of a file that cannot be meant together."""
    program = facts.training.program
    for node in nodes_of_kind(facts.source.tree, ast.Dict):
        yield from _both_in_dict(node)
    for scope in program.scopes:
        for call in scope.calls:
            yield from (both for both in _both(call) if program.callee(call, scope) is None)
            yield from _fsdp(facts, call, scope)
    yield from _half_model(facts)
