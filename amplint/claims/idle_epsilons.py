"""Epsilons that need not keep anything from zero: nobody uses them, nothing divides by it, or it hardly is zero."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.choices import only_decides
from amplint.claims.divisors import may_divide
from amplint.claims.parameters import default_of, kept_as, method, passed_by_calls
from amplint.claims.result_uses import uses_behind
from amplint.judge import doubts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.surroundings import FunctionNode, Surroundings
    from amplint.finding import Doubt

_PICKERS = frozenset(("gather", "topk", "take_along_dim", "index_select", "masked_select"))
_CHOOSER = "topk"
_ADDERS = frozenset(("scatter_add_", "index_add_"))
_RESHAPED = frozenset(("view", "reshape", "flatten", "transpose", "permute", "squeeze", "unsqueeze", "to", "type_as"))
_MAX_STEPS = 8
_EXPONENTIALS = frozenset(("exp", "exp2"))
_ANGLE = "atan2"
_STEPS = ("training_step", "compute_loss")
_ROOTS = frozenset(("sqrt", "sqrt_"))
_LEAST = 2.0**-24
_SHARES = frozenset(("sigmoid", "softmax"))


def idle_doubts(
    tree: ast.Module, around: Surroundings, node: ast.expr | ast.stmt, operand: ast.expr | None
) -> Iterator[Doubt]:
    """Whether what an epsilon is added to, ``operand``, is far from zero, or the result ``node`` is only multiplied.

    Or it is an argument of ``atan2``, which takes zeros, or only decides a choice.
    """
    if operand is not None and _sums_picked_shares(around, operand):
        yield doubts.PICKED_SHARES
    if operand is not None and _is_exponential_by_default(tree, around, operand):
        yield doubts.EXPONENTIAL_BY_DEFAULT
    if operand is not None and _is_tested(around, operand):
        yield doubts.TESTED_BEFORE
    if not isinstance(node, ast.expr):
        return
    if _is_only_multiplied(around, node):
        yield doubts.ONLY_MULTIPLIED
    if _is_of_angle(around, node):
        yield doubts.OF_AN_ANGLE
    if only_decides(around, node):
        yield doubts.ONLY_DECIDES


def guards_gradients_alone(tree: ast.Module, around: Surroundings, node: ast.expr | ast.stmt) -> bool:
    """Whether what an epsilon gives goes under a root that nothing divides by: the root of zero is zero, and only its
    gradient is infinite."""
    parent = around.parent(node)
    if isinstance(parent, ast.Attribute):
        parent = around.parent(parent)
    if not isinstance(node, ast.expr) or not isinstance(parent, ast.Call) or around.called(parent) not in _ROOTS:
        return False
    return not may_divide(tree, around, parent)


def is_of_trainer(around: Surroundings, node: ast.expr | ast.stmt) -> bool:
    """Whether a node stands in a class that makes training steps and is no module: what it trains is not float16, whose
    gradients no ``GradScaler`` takes.
    """
    return any(
        isinstance(owner, ast.ClassDef)
        and method(owner, "forward") is None
        and any(method(owner, name) is not None for name in _STEPS)
        for owner in around.ancestors(node)
    )


def _is_of_angle(around: Surroundings, node: ast.expr) -> bool:
    parent = around.parent(node)
    return isinstance(parent, ast.Call) and node in parent.args and around.called(parent) == _ANGLE


def _is_tested(around: Surroundings, operand: ast.expr) -> bool:
    """Whether a test lets only numbers above another one come here: ``if norm > eps:``."""
    shown = ast.unparse(operand)
    for test, answer in around.tests(operand):
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and ast.unparse(test.left) == shown:
            above = isinstance(test.ops[0], ast.Gt | ast.GtE)
            below = isinstance(test.ops[0], ast.Lt | ast.LtE)
            bound = test.comparators[0]
            if (above if answer else below) and not (isinstance(bound, ast.Constant) and not bound.value):
                return True
    return False


def _is_only_multiplied(around: Surroundings, node: ast.expr) -> bool:
    """Whether the variable that a result is kept in is a factor wherever it is read, of products that are kept too.

    A product may be zero whatever an epsilon did for one factor: who divides by it has to see to that.
    """
    statement, function = around.parent(node), around.function(node)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or function is None:
        return False
    target = statement.targets[0]
    if not isinstance(target, ast.Name):
        return False
    uses = list(uses_behind(function, target.id, node))
    return bool(uses) and all(_is_factor(around, use) for use in uses)


def _is_factor(around: Surroundings, node: ast.expr) -> bool:
    current, parent = node, around.parent(node)
    while isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mult):
        current, parent = parent, around.parent(parent)
    if isinstance(parent, ast.AugAssign):
        return isinstance(parent.op, ast.Mult) and parent.value is current
    return current is not node and isinstance(parent, ast.Assign)


def _sums_picked_shares(around: Surroundings, node: ast.expr) -> bool:
    """``torch.gather(scores, -1, index).sum(-1)`` of what a sigmoid or softmax gave, by a variable or two.

    Or what an activation gave that the configuration names: nothing says that it gives zeros. Or such shares are added
    up by ``scatter_add_`` at the places that they are then divided by.
    """
    if _gathers_added_shares(around, node):
        return True
    if not isinstance(node, ast.Call) or around.called(node) != "sum" or not isinstance(node.func, ast.Attribute):
        return False
    subject = around.subject(node)
    return any(
        isinstance(value, ast.Call) and around.called(value) in _PICKERS and _picks_from_shares(around, value)
        for value in (*_values(around, subject), *_chosen(around, subject))
    )


def _gathers_added_shares(around: Surroundings, node: ast.expr) -> bool:
    """``sums[index]`` behind ``sums.scatter_add_(0, index, picked)``: no sum is read that nothing was added to."""
    function = around.function(node)
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name) or function is None:
        return False
    place = ast.dump(node.slice)
    for call in ast.walk(function):
        added = isinstance(call, ast.Call) and around.called(call) in _ADDERS and len(call.args) == 3
        if not added or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        to = call.func.value
        if isinstance(to, ast.Name) and to.id == node.value.id and ast.dump(call.args[1]) == place:
            return _is_picked(around, call.args[2], _MAX_STEPS)
    return False


def _is_picked(around: Surroundings, node: ast.expr, steps: int) -> bool:
    """Whether a tensor is what was picked of shares, reshaped or not."""
    if isinstance(node, ast.Call) and around.called(node) in _PICKERS:
        return _picks_from_shares(around, node)
    return any(_is_picked(around, source, steps - 1) for source in _sources(around, node)) if steps else False


def _picks_from_shares(around: Surroundings, call: ast.Call) -> bool:
    subject = around.subject(call)
    return subject is not None and _holds_shares(around, subject, _MAX_STEPS)


def _holds_shares(around: Surroundings, node: ast.expr, steps: int) -> bool:
    """Whether a tensor is shares on every way, reshaped or cast or not."""
    if is_share(around, node) or _is_of_named_activation(around, node):
        return True
    sources = _sources(around, node) if steps else []
    return bool(sources) and all(_holds_shares(around, source, steps - 1) for source in sources)


def _sources(around: Surroundings, node: ast.expr) -> list[ast.expr]:
    """What a variable is assigned above, both arms of a choice, and what is reshaped or cast."""
    if isinstance(node, ast.Name):
        return _values(around, node)
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    subject = around.subject(node) if isinstance(node, ast.Call) and around.called(node) in _RESHAPED else None
    return [] if subject is None else [subject]


def _is_of_named_activation(around: Surroundings, node: ast.expr) -> bool:
    """``self.activation(logits)`` where the class takes that from a table: ``self.activation = ACTIVATIONS[name]``."""
    owner = next((a for a in around.ancestors(node) if isinstance(a, ast.ClassDef)), None)
    function = node.func if isinstance(node, ast.Call) else None
    if owner is None or not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return False
    given = [
        statement.value
        for statement in ast.walk(owner)
        if isinstance(statement, ast.Assign)
        and any(isinstance(target, ast.Attribute) and target.attr == function.attr for target in statement.targets)
    ]
    taken = [value for value in given if isinstance(value, ast.Subscript) and not isinstance(value.slice, ast.Constant)]
    return function.value.id == "self" and bool(given) and len(taken) == len(given)


def _values(around: Surroundings, node: ast.expr | None) -> list[ast.expr]:
    """What a function assigns to a variable before it is read; of any other expression that itself."""
    if not isinstance(node, ast.Name):
        return [] if node is None else [node]
    function = around.function(node)
    assigned = [n for n in ast.walk(function) if isinstance(n, ast.Assign)] if function is not None else []
    return [
        n.value
        for n in assigned
        if n.lineno < node.lineno and any(isinstance(t, ast.Name) and t.id == node.id for t in n.targets)
    ]


def _chosen(around: Surroundings, node: ast.expr | None) -> list[ast.expr]:
    """``torch.topk`` that gives a variable its first result, the values: ``best, index = torch.topk(scores, 2)``."""
    function = around.function(node) if isinstance(node, ast.Name) else None
    if function is None or not isinstance(node, ast.Name):
        return []
    return [
        n.value
        for n in ast.walk(function)
        if isinstance(n, ast.Assign)
        and n.lineno < node.lineno
        and isinstance(n.value, ast.Call)
        and around.called(n.value) == _CHOOSER
        and any(
            isinstance(t, ast.Tuple) and isinstance(t.elts[0], ast.Name) and t.elts[0].id == node.id for t in n.targets
        )
    ]


def _is_exponential_by_default(tree: ast.Module, around: Surroundings, node: ast.expr) -> bool:
    """Whether a variable is an exponential under an option of the object whose default no construction in the file
    changes."""
    choice = around.only_value(node) if isinstance(node, ast.Name) else None
    owner = next((a for a in around.ancestors(node) if isinstance(a, ast.ClassDef)), None)
    made = method(owner, "__init__") if owner is not None else None
    if not isinstance(choice, ast.IfExp) or owner is None or made is None:
        return False
    turned = isinstance(choice.test, ast.UnaryOp) and isinstance(choice.test.op, ast.Not)
    flag = choice.test.operand if isinstance(choice.test, ast.UnaryOp) and turned else choice.test
    if not isinstance(flag, ast.Attribute) or not isinstance(flag.value, ast.Name) or flag.value.id != "self":
        return False
    parameter = kept_as(made, flag.attr)
    given = default_of(made, parameter) if parameter is not None else None
    default = given.value if isinstance(given, ast.Constant) else None
    if not isinstance(default, bool) or any(passed_by_calls(tree, owner.name, made, parameter, skip=1)):
        return False
    chosen = choice.body if default is not turned else choice.orelse
    return isinstance(chosen, ast.Call) and around.called(chosen) in _EXPONENTIALS


def is_overridden(tree: ast.Module, around: Surroundings, constant: ast.expr | None) -> bool:
    """Whether a constant is a parameter's default, and every construction or call in the file passes a number that
    float16 holds.

    The parameter is read where it is, or kept as an attribute by ``__init__``.
    """
    if isinstance(constant, ast.Attribute) and isinstance(constant.value, ast.Name) and constant.value.id == "self":
        owner = next((a for a in around.ancestors(constant) if isinstance(a, ast.ClassDef)), None)
        made = method(owner, "__init__") if owner is not None else None
        parameter = kept_as(made, constant.attr) if made is not None else None
        return owner is not None and made is not None and _all_pass(tree, owner.name, made, parameter, skip=1)
    function = around.function(constant) if isinstance(constant, ast.Name) else None
    if function is None or not isinstance(constant, ast.Name) or isinstance(around.parent(function), ast.ClassDef):
        return False
    return _all_pass(tree, function.name, function, constant.id, skip=0)


def sums_shares(around: Surroundings, node: ast.expr | None) -> bool:
    """Whether a tensor is a sum of probabilities: ``p.sum(-1)`` of a ``p`` that is made by a sigmoid or softmax."""
    if not isinstance(node, ast.Call) or around.called(node) != "sum":
        return False
    of = around.subject(node)
    if of is not None and is_share(around, of):
        return True
    function = around.function(node)
    if function is None or not isinstance(of, ast.Name):
        return False
    given = [n.value for n in ast.walk(function) if isinstance(n, ast.Assign) and _gives(n, of.id)]
    return any(is_share(around, value) for value in given)


def is_share(around: Surroundings, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and around.called(node) in _SHARES


def _gives(statement: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)


def _all_pass(tree: ast.Module, name: str, function: FunctionNode, parameter: str | None, skip: int) -> bool:
    """Whether there are calls of a name in the file, and all pass a number for a parameter that has a default."""
    values = passed_by_calls(tree, name, function, parameter, skip)
    return bool(values) and all(map(_is_held, values))


def _is_held(node: ast.expr | None) -> bool:
    """A number written out that float16 does not round to zero."""
    return isinstance(node, ast.Constant) and isinstance(node.value, float) and node.value >= _LEAST
