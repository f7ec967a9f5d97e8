"""Where in a running program something happens, as what is recorded of it needs to know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from amplint.infer.syntax.control import Followed

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable

    from amplint.infer.lattice.dtypes import Autocast
    from amplint.infer.lattice.values import Value
    from amplint.infer.names.definitions import Class
    from amplint.infer.names.namespace import Namespace
    from amplint.infer.state.facts import Region, Use


class Env(NamedTuple):
    """A point of a function: the scenarios that reach it, a bit each, and the variables there.

    ``raised``: the scenarios in which something surely raised on the way, so that none but another way leads on from
    there; what runs behind it is followed all the same.
    """

    live: int
    variables: dict[str, Value]
    raised: int = 0

    def __bool__(self) -> bool:
        return self.live != 0


class Activation(Followed[Env]):
    """The activation of a function, or of a module's top level: its place, and what holds there now.

    ``live`` has a bit for each scenario that reaches the current statement. ``in_module`` says that the code runs as
    part of an ``nn.Module``, where the scenario's ambient autocast is around it.
    """

    namespace: Namespace
    owner: Class | None
    autocast: Autocast
    region: Region | None
    in_module: bool
    backward: bool
    number = 0
    """Tells activations apart."""
    uses: dict[int, Use] | None = None
    """By ``id``, the uses met here, or in a function that was called here, while nothing had raised in it."""
    raised = 0
    """The scenarios, a bit each, in which something surely raised on the way here since the function began."""
    traced = False
    """Whether operands disagreed here, or in a function that was called here."""
    brings = False
    """Whether an operation raised here, or in a function that was called here, for what the checked file handed over:
    that is told of each call."""
    caller: Any = None
    """The activation of the same kind that called this one."""
    function = 0
    """``id`` of the function node that runs, 0 at the top level of a module."""
    left: tuple[Any, ast.expr] | None = None
    """In another file than the one that is checked: the last of its activations, and the call by which it was left."""

    def raises(self, lanes: Iterable[int]) -> None:
        """Note that something surely raises here in some live scenarios, by number."""
        for lane in lanes:
            self.raised |= 1 << lane & self.live
