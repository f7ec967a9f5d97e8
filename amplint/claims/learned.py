"""Whether a tensor is made of what a module learns or keeps: a zero there would show in every run, on any data."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.parameters import passed
from amplint.infer.names.annotations import last_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amplint.claims.surroundings import FunctionNode, Surroundings

_MAX_STEPS = 12
_PARAMETERS = frozenset(("Parameter", "ParameterDict", "ParameterList"))
_REGISTERS = frozenset(("register_parameter", "register_buffer"))
_BUFFER = "Buffer"
_ZEROS = frozenset(("zeros", "zeros_like", "new_zeros"))
_EXPONENTIALS = frozenset(("exp", "exp2", "softplus"))
_WINDOWS = frozenset(("hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window"))
_KEEPING = frozenset(
    (
        *("abs", "pow", "square", "sqrt", "sum", "mean", "norm", "amax", "fold", "data", "T", "mT", "to", "float"),
        *("half", "type_as", "view", "reshape", "expand", "expand_as", "broadcast_to", "repeat", "repeat_interleave"),
        *("unsqueeze", "squeeze", "transpose", "permute", "t", "flatten", "unflatten", "contiguous", "detach", "clone"),
    )
)
"""What gives no zero from numbers that are not zero."""


def is_learned(tree: ast.Module, around: Surroundings, node: ast.expr | None) -> bool:
    """Whether a tensor is made of parameters and buffers of its module alone, none of which begins as zeros.

    Zeros are let in where their exponential is taken. Buffers count that nothing in the class writes to, and windows.
    """
    return node is not None and _Learned(tree, around).made_of(node, _MAX_STEPS) is True


class _Learned:
    """What expressions are made of: True of learned numbers alone, None of numbers written out, False of others."""

    def __init__(self, tree: ast.Module, around: Surroundings) -> None:
        self.tree = tree
        self.around = around

    def made_of(self, node: ast.expr, steps: int, zeros: bool = False) -> bool | None:
        """``zeros``: whether numbers that begin as zeros count."""
        if isinstance(node, ast.Constant):
            return None
        if steps == 0:
            return False
        if isinstance(node, ast.Name):
            return self._variable(node, steps - 1, zeros)
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id == "self":
                return self._is_kept(node, zeros)
            return node.attr in _KEEPING and self.made_of(node.value, steps - 1, zeros)
        if isinstance(node, ast.Call):
            if self.around.called(node) in _WINDOWS:
                return True
            if isinstance(node.func, ast.Name) and node.args and self._is_own(node.func.id):
                return self._all(node.args, steps - 1, zeros)
            of = _operand(self.around, node)
            if of is None:
                return False
            return self.made_of(of, steps - 1, zeros or self.around.called(node) in _EXPONENTIALS)
        parts = _parts(node)
        return self._all(parts, steps - 1, zeros) if parts else False

    def _is_own(self, name: str) -> bool:
        return any(isinstance(statement, ast.FunctionDef) and statement.name == name for statement in self.tree.body)

    def _all(self, nodes: Iterable[ast.expr], steps: int, zeros: bool) -> bool | None:
        found = [self.made_of(node, steps, zeros) for node in nodes]
        return False if False in found else True if True in found else None

    def _variable(self, name: ast.Name, steps: int, zeros: bool) -> bool | None:
        function = self.around.function(name)
        if function is None:
            return False
        given = sorted(_given(function, name), key=lambda value: value.lineno)
        if not given:
            return self._passed(function, name.id, steps, zeros)
        final = given[-1]
        exponential = isinstance(final, ast.Call) and self.around.called(final) in _EXPONENTIALS
        return self._all([final] if exponential else given, steps, zeros)

    def _passed(self, function: FunctionNode, parameter: str, steps: int, zeros: bool) -> bool | None:
        """What every call in the file passes for a parameter of a function that is no method."""
        names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
        if parameter not in names or isinstance(self.around.parent(function), ast.ClassDef):
            return False
        place = names.index(parameter)
        calls = [n for n in ast.walk(self.tree) if isinstance(n, ast.Call) and last_name(n.func) == function.name]
        values = [passed(call, parameter, place) for call in calls]
        given = [value for value in values if value is not None]
        return bool(given) and len(given) == len(values) and self._all(given, steps, zeros)

    def _is_kept(self, attribute: ast.Attribute, zeros: bool) -> bool:
        owner = next((a for a in self.around.ancestors(attribute) if isinstance(a, ast.ClassDef)), None)
        for owning in self._with_bases(owner, 3):
            made = [value for value in _registered(self.around, owning, attribute.attr) if value is not None]
            if made:
                calls = [n for value in made for n in ast.walk(value) if isinstance(n, ast.Call)]
                empty = any(self.around.called(call) in _ZEROS for call in calls)
                return zeros or not empty
        return False

    def _with_bases(self, owner: ast.ClassDef | None, levels: int) -> Iterator[ast.ClassDef]:
        """A class and its bases of the file."""
        if owner is None or levels == 0:
            return
        yield owner
        names = {last_name(base) for base in owner.bases}
        for statement in self.tree.body:
            if isinstance(statement, ast.ClassDef) and statement.name in names and statement is not owner:
                yield from self._with_bases(statement, levels - 1)


def _operand(around: Surroundings, call: ast.Call) -> ast.expr | None:
    """The tensor that a call reshapes, or is the power, norm or exponential of; what a method of ``self`` is passed."""
    function = call.func
    own = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "self"
    if not own and around.called(call) not in _KEEPING | _EXPONENTIALS:
        return None
    if own:
        return call.args[0] if call.args else None
    return around.subject(call)


def _parts(node: ast.expr) -> tuple[ast.expr, ...]:
    """The tensors of an expression that is zero only where one of them is."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult | ast.Div | ast.Pow):
        return node.left, node.right
    if isinstance(node, ast.IfExp):
        return node.body, node.orelse
    if isinstance(node, ast.UnaryOp):
        return (node.operand,)
    return (node.value,) if isinstance(node, ast.Subscript) else ()


def _given(function: FunctionNode, name: ast.Name) -> list[ast.expr]:
    """What a variable is assigned above the place where it is read."""
    return [
        n.value
        for n in ast.walk(function)
        if isinstance(n, ast.Assign)
        and n.lineno < name.lineno
        and any(isinstance(target, ast.Name) and target.id == name.id for target in n.targets)
    ]


def _registered(around: Surroundings, owner: ast.ClassDef, name: str) -> Iterator[ast.expr | None]:
    """What a class makes a parameter or buffer of that name of; nothing for a buffer that it writes to."""
    for node in ast.walk(owner):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            if any(isinstance(target, ast.Attribute) and target.attr == name for target in node.targets):
                of = around.called(node.value)
                if of in _PARAMETERS or (of == _BUFFER and not _is_written(owner, name, stores=1)):
                    yield node.value
        elif isinstance(node, ast.Call) and around.called(node) in _REGISTERS and len(node.args) > 1:
            registered = isinstance(node.args[0], ast.Constant) and node.args[0].value == name
            if registered and not _is_written(owner, name):
                yield node.args[1]


def _is_written(owner: ast.ClassDef, name: str, stores: int = 0) -> bool:
    """Whether a class assigns to an attribute more often than that, or changes it in place."""
    for node in ast.walk(owner):
        if not isinstance(node, ast.Attribute):
            continue
        if node.attr == name and isinstance(node.ctx, ast.Store):
            stores -= 1
            if stores < 0:
                return True
        in_place = node.attr.endswith("_") and not node.attr.endswith("__")
        if in_place and any(isinstance(n, ast.Attribute) and n.attr == name for n in ast.walk(node.value)):
            return True
    return False
