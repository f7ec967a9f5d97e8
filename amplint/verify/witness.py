"""Watches an analysis for the operations at given places: operands, arguments and autocast, context by context.

The facts of a file keep one context of each operation; to run an operation alone in some scenario, what the context
said that made it fail there is needed.
"""

from __future__ import annotations

import ast
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from amplint.claims.conflicts import in_context
from amplint.frozen import dataclass
from amplint.infer.lattice.dtypes import OFF
from amplint.infer.lattice.values import Tensor, TensorMethod, TorchName, Value
from amplint.infer.machine.expressions import evaluate
from amplint.infer.state.facts import Mismatch
from amplint.infer.state.frame import Frame
from amplint.infer.state.operand import Operand
from amplint.infer.state.record import Recorder
from amplint.infer.state.session import OutOfBudget
from amplint.infer.torch_model.casts_by_autocast import left_alone
from amplint.infer.torch_model.layers import find_layer
from amplint.infer.torch_model.torch_ops import Op, find_op

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from amplint.infer.lattice.dtypes import Autocast
    from amplint.infer.state.activation import Activation
    from amplint.infer.state.facts import FileFacts, Refused, Unmoved
    from amplint.source import Span

_PLAIN = (
    *(ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.UnaryOp, ast.BinOp, ast.Compare, ast.Tuple, ast.List),
    *(ast.Slice, ast.Call, ast.keyword, ast.IfExp, ast.BoolOp),
    *(ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop),
)


@dataclass(frozen=True, eq=False)
class Sight:
    """An operation as one context has it.

    ``operands`` have the dtypes that the kernel sees; none where the operation as such is the hazard. ``scenarios`` are
    those in which it is one. ``values`` are what the expressions below ``node`` hold, by ``id``, and ``arguments`` the
    operation's by parameter. ``rank`` is smaller for what is surer.
    """

    node: ast.expr | ast.stmt
    op: Op
    operands: tuple[Operand, ...]
    scenarios: frozenset[str]
    autocast: Autocast
    values: Mapping[int, Value]
    arguments: Mapping[str, Value]
    rank: int = 0


class Witness(Recorder):
    """A recorder that also remembers every context of the operations at the ``wanted`` spans."""

    def __init__(self, wanted: Collection[Span]) -> None:
        super().__init__()
        self._wanted = frozenset(wanted)
        self._looking = False
        self._arguments: dict[int, tuple[str, dict[str, Value]]] = {}
        self._disagreeing: dict[Span, list[tuple[Mismatch, Sight]]] = {}
        self._called: dict[Span, list[Sight]] = {}

    def sights(self, facts: FileFacts, span: Span) -> list[Sight]:
        """What was seen at a span, the surest first: operands that disagree, else calls as such."""
        judged = [(in_context(facts, mismatch), sight) for mismatch, sight in self._disagreeing.get(span, ())]
        found = [
            replace(sight, scenarios=frozenset(conflict.scenarios), rank=conflict.standing.rank)
            for conflict, sight in judged
            if conflict is not None
        ]
        return sorted(found, key=lambda sight: sight.rank) or self._called.get(span, [])

    def concerns(self, frame: Activation) -> bool:
        return not self._looking and super().concerns(frame)

    def happened(self, frame: Activation, what: Mismatch | Refused | Unmoved) -> None:
        super().happened(frame, what)
        if not isinstance(what, Mismatch) or not isinstance(frame, Frame) or not self.concerns(frame):
            return
        op = _op(what.op, frame)
        if op is None or what.elsewhere is not None:
            return
        span = frame.namespace.source.span(what.node)
        if span in self._wanted:
            _, arguments = self._arguments.get(id(what.node), ("", {}))
            values = self._values(frame, what.node)
            autocast = _acting(frame, [operand.value for operand in what.operands])
            sight = Sight(what.node, op, what.operands, frozenset(), autocast, values, arguments)
            self._disagreeing.setdefault(span, []).append((what, sight))

    def torch_call(self, frame: Activation, name: str, node: ast.expr | ast.stmt, arguments: dict[str, Value]) -> None:
        super().torch_call(frame, name, node, arguments)
        if not isinstance(node, ast.Call) or not isinstance(frame, Frame) or not self.concerns(frame):
            return
        op = find_op(name, frame.session.torch_version)
        if op is None:
            return
        span = frame.namespace.source.span(node)
        if span in self._wanted:
            self._arguments[id(node)] = (name, arguments)
            scenarios = frozenset(s.name for lane, s in enumerate(frame.session.scenarios) if frame.live >> lane & 1)
            autocast = _acting(frame, arguments.values())
            sight = Sight(node, op, (), scenarios, autocast, self._values(frame, node), arguments)
            self._called.setdefault(span, []).append(sight)

    def _values(self, frame: Frame, node: ast.expr | ast.stmt) -> dict[int, Value]:
        """What the plain expressions below a node hold. Nothing of this look is recorded or counted."""
        steps, self._looking = frame.session.steps, True
        found: dict[int, Value] = {}
        try:
            for child in reversed(list(ast.walk(node))):
                if child is node or not isinstance(child, ast.expr):
                    continue
                with suppress(OutOfBudget, RecursionError):
                    if _is_plain(child, found):
                        found[id(child)] = evaluate(frame, child)
        finally:
            frame.session.steps, self._looking = steps, False
        return found


def _acting(frame: Frame, arguments: Iterable[Value]) -> Autocast:
    """The autocast that acts on an operation of these arguments: off where all its tensors lie in the host's memory."""
    operands = [Operand("", None, tensor) for tensor in arguments if isinstance(tensor, Tensor)]
    return (OFF,) * len(frame.autocast) if left_alone(frame, operands) else frame.autocast


def _op(name: str, frame: Frame) -> Op | None:
    """The operation of that name, or what calling a layer of that class does."""
    layer = find_layer(name) if name.startswith("torch.nn.") else None
    return layer.call if layer is not None else find_op(name, frame.session.torch_version)


def _is_plain(node: ast.expr, known: Mapping[int, Value]) -> bool:
    """Whether evaluating an expression again changes nothing: it calls no code of the project."""
    for child in ast.walk(node):
        if not isinstance(child, _PLAIN):
            return False
        if isinstance(child, (ast.Name, ast.Attribute, ast.Subscript)) and not isinstance(child.ctx, ast.Load):
            return False
        if isinstance(child, ast.Call) and not isinstance(known.get(id(child.func)), (TorchName, TensorMethod)):
            return False
    return True
