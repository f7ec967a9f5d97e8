"""Comparisons of versions: what code asks of the torch that runs it, the release that is judged answers.

``torch.__version__`` compares with strings as with versions, like its class ``torch.torch_version.TorchVersion``.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.lattice.contexts import AutocastFlag
from amplint.infer.lattice.values import Const

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from packaging.version import Version as Parsed

    from amplint.infer.lattice.arguments import Arguments
    from amplint.infer.lattice.values import Value
    from amplint.infer.state.session import Session

OF_TORCH = ("torch.__version__", "torch.version.__version__")
PARSERS = frozenset(
    {
        *("packaging.version.parse", "packaging.version.Version", "pkg_resources.parse_version"),
        *("pkg_resources.packaging.version.parse", "pkg_resources.packaging.version.Version"),
        *("distutils.version.LooseVersion", "distutils.version.StrictVersion", "looseversion.LooseVersion"),
    }
)
"""What makes a version of a string."""


@dataclass(frozen=True, slots=True, eq=False)
class Version(Const):
    """A version, as its string."""

    @property
    def key(self) -> Hashable:
        return ("version", self.value)


def of_torch(session: Session) -> Version:
    """The version of the torch that is judged."""
    major, minor = session.torch_version
    return Version(f"{major}.{minor}.0")


def parsed(arguments: Arguments) -> Version | None:
    """The version that a string is made, where that is known."""
    given = arguments.positional[0] if len(arguments.positional) == 1 else None
    known = isinstance(given, Const) and isinstance(given.value, str) and _parsed(given.value) is not None
    return Version(given.value) if known and isinstance(given, Const) else None


def compared(left: Value, right: Value, compare: Callable[[object, object], bool]) -> bool | None:
    """How two values compare of which one is a version; None where neither is, or that is not known.

    An older release that the project allows may answer otherwise. It is not asked for that alone: files that compare
    versions would be analysed twice.
    """
    if not isinstance(left, Const) or not isinstance(right, Const):
        return None
    if not isinstance(left, Version) and not isinstance(right, Version):
        return None
    one, other = _parsed(left.value), _parsed(right.value)
    return None if one is None or other is None else compare(one, other)


def answer(session: Session, *, holds: bool) -> AutocastFlag:
    """What torch itself answers, in all scenarios: nobody sets it to anything else, as they may a constant."""
    lanes = session.all_lanes
    return AutocastFlag(lanes, 0) if holds else AutocastFlag(0, lanes)


@cache
def _parsed(text: object) -> Parsed | None:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(text) if isinstance(text, str) else None
    except InvalidVersion:
        return None
