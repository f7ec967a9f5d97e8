"""What constructors chose by a test: where a method makes the same test, it finds what was chosen there."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from amplint.compiling import ordinary
from amplint.infer.lattice.joining import unite
from amplint.infer.machine.answers import question_of
from amplint.infer.names.classes import ancestry
from amplint.infer.names.definitions import Class, Function, Instance
from amplint.infer.syntax.bodies import nodes_inside, once_for_each_node
from amplint.infer.syntax.memberships import Membership, membership_of

if TYPE_CHECKING:
    from amplint.infer.lattice.values import Value
    from amplint.infer.state.frame import Frame

_CERTAIN, _ELSEWHERE = 0, -1
Ways = tuple[frozenset[int], frozenset[int]]
"""The blocks that are run where a test is true, and where it is false, the outermost one and those inside."""


def note(frame: Frame, instance: Instance, name: str, value: Value) -> None:
    """The constructor that runs sets an attribute of its object, in a block of its own or outside of all."""
    own = frame.receiver is instance and getattr(frame.definition, "name", "") == "__init__"
    if own and not frame.branches:
        instance.chosen[name] = {_CERTAIN: value}
    else:
        instance.chosen.setdefault(name, {})[frame.block if own else _ELSEWHERE] = value


def note_parts(frame: Frame, target: ast.expr, value: ast.expr) -> None:
    """The constructor that runs has set an attribute by ``a if test else b``."""
    if isinstance(value, ast.IfExp) and isinstance(target, ast.Attribute) and frame.parts.keys() == _parts(value):
        found = frame.constructing.chosen.get(target.attr) if frame.constructing is not None else None
        if found is not None and [*found] == [_CERTAIN]:
            found.update(frame.parts)


def _parts(node: ast.IfExp) -> set[int]:
    return {id(node.body), id(node.orelse)}


def choose(frame: Frame, test: ast.expr, truth: bool) -> None:
    """A method's test of its object came out so: attributes hold what the constructor left where it did too."""
    instance = frame.receiver
    if not isinstance(instance, Instance) or not instance.chosen or frame.constructing is instance:
        return
    asked = question_of(test)
    if asked is None:
        return
    text, denied, words = asked
    if frame.own_name not in words or not all(word[0] != "." or frame.lasting(word[1:]) for word in words):
        return
    for base in ancestry(instance.cls):
        member = base.members.get("__init__") if isinstance(base, Class) else None
        if isinstance(member, Function) and isinstance(member.node, ast.FunctionDef):
            for question, ways in _choices(member.node).items():
                holds = truth != denied if question == text else _implied(member.node, test, truth, question)
                for taken, other in ways if holds is not None else ():
                    _take(frame, instance, *((taken, other) if holds else (other, taken)))


def _implied(constructor: ast.FunctionDef, test: ast.expr, truth: bool, question: str) -> bool | None:
    """Whether the condition of a constructor's test holds where a method's test of the same thing came out so."""
    asked, other = membership_of(test), _memberships(constructor).get(question)
    return asked.says(truth, other) if asked is not None and other is not None else None


def way(frame: Frame, callee: ast.expr, option: Value) -> int | None:
    """A number for how the constructor's test came out by which an attribute holds an option: the same for all that
    were chosen by the same test. None where that is not known."""
    instance = frame.receiver
    if not isinstance(callee, ast.Attribute) or not isinstance(instance, Instance) or frame.constructing is instance:
        return None
    if not isinstance(callee.value, ast.Name) or callee.value.id != frame.own_name or not frame.lasting(callee.attr):
        return None
    held = instance.chosen.get(callee.attr, {}).items()
    blocks = [block for block, value in held if block != _CERTAIN and value.key == option.key]
    for base in ancestry(instance.cls) if len(blocks) == 1 else ():
        member = base.members.get("__init__") if isinstance(base, Class) else None
        if isinstance(member, Function) and isinstance(member.node, ast.FunctionDef):
            for text, ways in _choices(member.node).items():
                for taken, other in ways:
                    if blocks[0] in taken | other and not _rebinds(member.node, text):
                        return hash((id(member.node), text, blocks[0] in taken))
    return None


def _rebinds(constructor: ast.FunctionDef, test: str) -> bool:
    """Whether a constructor sets a variable that a test of it, as text, reads: it may come out otherwise then."""
    bound = _bound(constructor)
    return bool(bound) and not bound.isdisjoint(re.findall(r"(?<![\w.])[^\W\d]\w*", test))


@once_for_each_node
def _bound(constructor: ast.FunctionDef) -> frozenset[str]:
    """The variables that a constructor sets."""
    names = (node for node in nodes_inside(constructor) if isinstance(node, ast.Name))
    return frozenset(name.id for name in names if not isinstance(name.ctx, ast.Load))


def _take(frame: Frame, instance: Instance, taken: frozenset[int], other: frozenset[int]) -> None:
    for name, found in instance.chosen.items():
        if found.keys() - taken - other <= {_CERTAIN} and found.keys() & (taken | other) and frame.lasting(name):
            held = [value for block, value in found.items() if block in taken]
            held = held or [value for block, value in found.items() if block == _CERTAIN]
            if held:
                frame.note(f"{frame.own_name}.{name}", unite(*held))


@once_for_each_node
def _choices(constructor: ast.FunctionDef) -> dict[str, list[Ways]]:
    """The blocks behind each test of a constructor, by the text that the test has in methods."""
    found: dict[str, list[Ways]] = {}
    for node, test in _tests(constructor):
        asked = question_of(test)
        if asked is not None:
            ways = _blocks(node.body), _blocks(node.orelse)
            found.setdefault(asked[0], []).append((ways[1], ways[0]) if asked[1] else ways)
    return found


@once_for_each_node
def _memberships(constructor: ast.FunctionDef) -> dict[str, Membership]:
    """By the same text, what the conditions say of constants."""
    found: dict[str, Membership] = {}
    for _, test in _tests(constructor):
        asked, membership = question_of(test), membership_of(test)
        if asked is not None and membership is not None:
            found[asked[0]] = membership._replace(denied=membership.denied is not asked[1])
    return found


@once_for_each_node
def _tests(constructor: ast.FunctionDef) -> list[tuple[ast.If | ast.IfExp, ast.expr]]:
    """What a constructor branches on, with the tests as methods make them."""
    spec = constructor.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    bound = _bound(constructor)
    stored: dict[str, ast.Attribute] = {}
    for statement in constructor.body:
        value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
        target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
        if isinstance(value, ast.Name) and isinstance(target, ast.Attribute) and value.id in {*names[1:]} - bound:
            stored[value.id] = ast.Attribute(target.value, target.attr, ast.Load())
    return [
        (node, _Stored(stored).visit(ast.parse(ast.unparse(node.test), mode="eval").body))
        for node in nodes_inside(constructor)
        if isinstance(node, (ast.If, ast.IfExp))
    ]


def _blocks(block: list[ast.stmt] | ast.expr) -> frozenset[int]:
    """A block of statements and those of ``if`` in it; of an expression itself."""
    blocks = {id(block)}
    for statement in block if isinstance(block, list) else ():
        if isinstance(statement, ast.If):
            blocks |= _blocks(statement.body) | _blocks(statement.orelse)
    return frozenset(blocks)


@ordinary
class _Stored(ast.NodeTransformer):
    """Puts the attributes that hold parameters in the place of these."""

    def __init__(self, stored: dict[str, ast.Attribute]) -> None:
        self._stored = stored

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._stored.get(node.id, node)
