"""The arguments of a call, with the expressions that gave them."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.lattice.keying import keys_of
from amplint.infer.lattice.values import Const, Number, Sequence, Value, extreme

if TYPE_CHECKING:
    import ast
    from collections.abc import Hashable


def generalised(value: Value) -> Value:
    """A value that stands for every number of its kind; flags, strings, None and extreme numbers stay."""
    if isinstance(value, Const):
        if type(value.value) is int:
            return Number("int", extreme=extreme(value.value))
        if type(value.value) is float:
            return Number("float", extreme=extreme(value.value))
    elif isinstance(value, Sequence) and value.items and all(isinstance(i, (Const, Number)) for i in value.items):
        items = tuple(generalised(item) for item in value.items)
        kinds = {item.key for item in items}
        return Sequence(None, items[0], value.mutable) if len(kinds) == 1 and len(items) > 3 else Sequence(items)
    return value


def usually_a(value: Value) -> Value:
    """A default: a number is one that a caller may choose otherwise."""
    if isinstance(value, Const) and type(value.value) in (int, float):
        assert isinstance(value.value, (int, float))
        return Number(type(value.value).__name__, value.value, extreme(value.value))
    return generalised(value)


@dataclass(slots=True)
class Arguments:
    """Positional and keyword arguments. ``nodes`` maps a position or a keyword to its expression.

    ``unknown``: a ``*args`` or ``**kwargs`` of unknown content was passed too. ``callee``: the called expression, where
    the source calls it itself. ``rest``: what every further positional argument is, where their number is not known;
    ``spread``: these as a sequence, where its ends are known.
    """

    positional: list[Value] = field(default_factory=list)
    keywords: dict[str, Value] = field(default_factory=dict)
    nodes: dict[int | str, ast.expr] = field(default_factory=dict)
    unknown: bool = False
    callee: ast.expr | None = None
    rest: Value | None = None
    spread: Sequence | None = None

    def get(self, position: int | None, name: str) -> Value | None:
        """The argument of that keyword, or at that position."""
        if name in self.keywords:
            return self.keywords[name]
        if position is not None and 0 <= position < len(self.positional):
            return self.positional[position]
        return None

    def node(self, position: int | None, name: str) -> ast.expr | None:
        """The expression of that argument."""
        if name in self.nodes:
            return self.nodes[name]
        return self.nodes.get(position) if position is not None else None

    def bind(self, params: tuple[str, ...]) -> dict[str, Value]:
        """Arguments by parameter name."""
        bound = dict(zip(params, self.positional, strict=False))
        bound.update(self.keywords)
        return bound

    def shifted(self, *first: tuple[Value, ast.expr | None]) -> Arguments:
        """The same arguments behind others: a bound receiver, a partial's."""
        count = len(first)
        nodes: dict[int | str, ast.expr] = {
            (key + count if isinstance(key, int) else key): node for key, node in self.nodes.items()
        }
        nodes.update({index: node for index, (_, node) in enumerate(first) if node is not None})
        values = [value for value, _ in first] + self.positional
        return Arguments(values, dict(self.keywords), nodes, self.unknown, rest=self.rest)

    def generalised(self) -> Arguments:
        """The same arguments with numbers of unknown value: no dtype depends on a size or a rate."""
        return Arguments(
            [generalised(value) for value in self.positional],
            {name: generalised(value) for name, value in self.keywords.items()},
            self.nodes,
            self.unknown,
            rest=self.rest,
        )

    @property
    def key(self) -> Hashable:
        return (
            keys_of(self, self.positional, len(self.positional)),
            tuple(self.keywords),
            keys_of(self, self.keywords.values(), len(self.keywords)),
            self.unknown,
            self.rest.key if self.rest is not None else None,
        )
