"""How tests came out before: two tests of the same unchanged condition go the same way."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.answered import ASKED, Answered, Held
from amplint.infer.syntax.bodies import nodes_below, once_for_each_node

if TYPE_CHECKING:
    from amplint.infer.lattice.values import Value
    from amplint.infer.state.frame import Frame

_ASKING = (ast.Name, ast.Attribute, ast.Compare, ast.UnaryOp, ast.BoolOp)


def _question(frame: Frame, test: ast.expr) -> tuple[str, bool, frozenset[str]] | None:
    """A condition as text, whether the test denies it, and what it reads.

    None for one that the function does not test again, and for what may change by itself.
    """
    repeated = frame.repeated
    if repeated is None:
        definition = frame.definition
        if definition is None or isinstance(definition, ast.Lambda):
            repeated = frozenset()
        else:
            repeated = _repeated(frame, definition)
        frame.repeated = repeated
    if not repeated or not isinstance(test, _ASKING):
        return None
    question = question_of(test)
    return question if question is not None and question[0] in repeated else None


def _repeated(frame: Frame, definition: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    """The conditions that stand in several of a function's tests."""
    known = frame.namespace.repeated.get(id(definition))
    if known is None:
        tests = frame.namespace.body(definition).tests
        known = frame.namespace.repeated[id(definition)] = _several(tests) if len(tests) > 1 else frozenset()
    return known


def _several(tests: tuple[ast.expr, ...]) -> frozenset[str]:
    seen: set[str] = set()
    several: set[str] = set()
    pending = [*tests]
    while pending:
        test = pending.pop()
        if isinstance(test, ast.BoolOp):
            pending += test.values
        if isinstance(test, _ASKING) and (question := question_of(test)) is not None:
            (several if question[0] in seen else seen).add(question[0])
    return frozenset(several)


@once_for_each_node
def question_of(test: ast.expr) -> tuple[str, bool, frozenset[str]] | None:
    """A condition as text, whether the test denies it, and what it reads; None for one that is not plain."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = question_of(test.operand) if isinstance(test.operand, _ASKING) else None
        return (inner[0], not inner[1], inner[2]) if inner is not None else None
    if isinstance(test, ast.BoolOp):
        return _of_several(test)
    denied = False
    if isinstance(test, ast.Compare):
        if len(test.ops) != 1 or not all(map(_is_plain, (test.left, test.comparators[0]))):
            return None
        op, right = test.ops[0], test.comparators[0]
        denied = isinstance(op, (ast.IsNot, ast.NotEq, ast.NotIn))
        sign = "is" if isinstance(op, (ast.Is, ast.IsNot)) else "in" if isinstance(op, (ast.In, ast.NotIn)) else None
        sign = "==" if isinstance(op, (ast.Eq, ast.NotEq)) else sign or type(op).__name__
        text = f"{_spelled(test.left)} {sign} {_spelled(right)}"
    elif isinstance(test, ast.Name) or (isinstance(test, ast.Attribute) and _is_plain(test)):
        text = _spelled(test)
    else:
        return None
    return ASKED + text, denied, _words_of(test)


def _of_several(test: ast.BoolOp) -> tuple[str, bool, frozenset[str]] | None:
    """The same for conditions that all hold, in whatever order; ``or`` denies that all of them fail."""
    every = isinstance(test.op, ast.And)
    parts = [question_of(part) if isinstance(part, _ASKING) else None for part in test.values]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        return None
    texts = sorted(f"{'' if denied is not every else 'not '}{text[len(ASKED) :]}" for text, denied, _ in found)
    return f"{ASKED}({' and '.join(texts)})", not every, frozenset().union(*(words for _, _, words in found))


def _words_of(test: ast.expr) -> frozenset[str]:
    """The variables that a test reads, and the attributes with a dot, and a bracket where an item is read."""
    nodes = nodes_below(test)
    names = {node.id for node in nodes if type(node) is ast.Name}
    names |= {f".[{n.value.attr}" for n in nodes if type(n) is ast.Subscript and type(n.value) is ast.Attribute}
    return frozenset(names | {f".{node.attr}" for node in nodes if type(node) is ast.Attribute})


def _is_plain(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return _is_plain(node.value)
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and _is_plain(node.value) and isinstance(node.slice, ast.Constant)
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return all(map(_is_plain, node.elts))
    return isinstance(node, (ast.Name, ast.Constant))


def _spelled(node: ast.expr) -> str:
    """A plain expression as text: the same for the same expression alone, and ``ast.unparse`` takes much longer."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_spelled(node.value)}.{node.attr}"
    return ast.unparse(node)


def answered(frame: Frame, test: ast.expr, yes: int, no: int) -> tuple[int, int]:
    """Of the scenarios in which a test can be true and false, those that are left by how it came out before."""
    question = _question(frame, test) if frame.notes else None
    found = frame.variables.get(question[0]) if question is not None else None
    if question is None or not isinstance(found, Answered):
        return yes, no
    left = (yes & found.no, no & found.yes) if question[1] else (yes & found.yes, no & found.no)
    return left if (left[0] | left[1]) == (yes | no) else (yes, no)


def hold(frame: Frame, target: ast.expr, value: ast.expr) -> None:
    """Note that a variable on which the function branches holds the answer of a test."""
    definition = frame.definition
    if not isinstance(value, (ast.Compare, ast.BoolOp)) or not isinstance(target, ast.Name):
        return
    if isinstance(definition, ast.FunctionDef) and target.id in frame.namespace.body(definition).branching:
        words = {word for word in _words_of(value) if word[0] != "." or not frame.lasting(word[1:])}
        if target.id not in words:
            frame.variables[f"{ASKED}={target.id}"] = Held(value, frozenset((*words, target.id)))
            frame.notes = True


def held_test(frame: Frame, name: str) -> ast.expr | None:
    """The test whose answer a variable holds."""
    held = frame.variables.get(f"{ASKED}={name}") if frame.notes else None
    return held.test if isinstance(held, Held) else None


def ask(frame: Frame, test: ast.expr) -> None:
    """Note that a test is made now, before it is known how it comes out."""
    question = _question(frame, test)
    if question is not None:
        _ask(frame, question)


def _ask(frame: Frame, question: tuple[str, bool, frozenset[str]]) -> None:
    if question[0] not in frame.variables:
        words = frozenset(word for word in question[2] if word[0] != "." or not frame.lasting(word[1:]))
        frame.variables[question[0]] = Answered(frame.live, frame.live, words, object())
        frame.notes = True


def answer(frame: Frame, test: ast.expr, truth: bool) -> None:
    """Note that a test came out so; variables that hung on it hold what that branch left in them."""
    question = _question(frame, test)
    if question is None:
        return
    _ask(frame, question)
    name, denied, _ = question
    found, truth = frame.variables[name], truth != denied
    assert isinstance(found, Answered)
    for variable, value in (found.true if truth else found.false).items():
        if frame.variables.get(variable) is found.joined[variable]:
            frame.variables[variable] = value
    live = frame.live
    frame.variables[name] = Answered(live if truth else 0, 0 if truth else live, found.words, found.since)


def branches_left(
    frame: Frame, test: ast.expr, true: dict[str, Value], true_live: int, false: dict[str, Value], false_live: int
) -> None:
    """Note what the two branches of a test left, where both lead on and neither changed what it reads."""
    question = _question(frame, test) if true_live and false_live else None
    if question is None:
        return
    name, denied, _ = question
    first, second = true.get(name), false.get(name)
    if not isinstance(first, Answered) or not isinstance(second, Answered) or first.since is not second.since:
        return
    if denied:
        true, true_live, false, false_live = false, false_live, true, true_live
    different = [
        variable
        for variable, value in true.items()
        if variable in false and value is not false[variable] and variable in frame.variables and variable[0] != ASKED
    ]
    sides = [{variable: side[variable] for variable in different} for side in (true, false, frame.variables)]
    frame.variables[name] = Answered(true_live, false_live, first.words, first.since, *sides)
