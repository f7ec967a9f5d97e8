"""The families of error texts, and the search for them in any text.

A family is one table of ``families/KIND.toml``. Its patterns are regular expressions in which ``{role}`` stands for a
dtype as torch writes it; which operand it is says the family's ``roles``. A pattern is only tried on a text that holds
its longest literal part, so that a long log costs a few searches for plain strings.
"""

from __future__ import annotations

import re
from functools import cache, cached_property
from importlib import resources
from typing import TYPE_CHECKING, Any

from amplint.config import parse_toml
from amplint.explain.literals import longest_literal
from amplint.explain.spelling import COMPLEX, FLOATING, LOW, PATTERN, dtype_of
from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = ("dtype", "overflow", "unsupported", "hardware", "scaler", "api", "silent")
"""``dtype``: operands disagree. ``overflow``: a constant does not fit. ``unsupported``: no kernel for that precision.
``hardware``: this device cannot. ``scaler``: the GradScaler's order. ``api``: wrong use or deprecation of an API, an
integer tensor where floats belong included. ``silent``: only the numbers show it."""


@dataclass(frozen=True, slots=True)
class Recognised:
    """One error text found. ``dtypes`` pairs operand roles with torch dtype names in the order of the message;
    ``values`` are other captured words (an op's name); ``text`` is the line."""

    family: str
    kind: str
    codes: tuple[str, ...]
    dtypes: tuple[tuple[str, str], ...]
    text: str
    values: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to do, and the code for it, which may be empty. ``rule``: the one whose defect it cures, if one alone."""

    do: str
    code: str
    rule: str | None


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What some dtypes of the operands tell: ``says`` holds where each role has a dtype of its class."""

    when: tuple[tuple[str, str], ...]
    says: str


@dataclass(frozen=True)
class Family:
    """One defect as torch and the libraries around it word it.

    ``says`` is the first line of the answer, with ``{role}`` for dtypes; ``title`` stands in where the text names none.
    ``warning``: printed without stopping the program, so that an error beside it is the better answer. ``needs`` names
    what the dtypes of the message must be for it to be this family: see :meth:`accepts`.
    """

    name: str
    kind: str
    title: str
    says: str
    patterns: tuple[str, ...]
    examples: tuple[str, ...]
    roles: dict[str, str]
    meaning: str
    origin: str
    narrowing: tuple[Narrowing, ...]
    remedies: tuple[Remedy, ...]
    codes: tuple[str, ...]
    warning: bool
    needs: str

    @cached_property
    def literals(self) -> tuple[str, ...]:
        """Of each pattern, what a text must hold for it to be tried."""
        return tuple(longest_literal(pattern) for pattern in self.patterns)

    def compiled(self, pattern: str) -> re.Pattern[str]:
        """The pattern with its roles as named groups."""
        return _compile(pattern, tuple(self.roles))

    def accepts(self, dtypes: tuple[tuple[str, str], ...]) -> bool:
        """Whether dtypes of a message fit: operands that disagree must differ and all be floating or complex."""
        found = {dtype for _, dtype in dtypes}
        if self.needs == "integer":
            return bool(found - FLOATING - COMPLEX)
        if found - FLOATING - COMPLEX:
            return False
        if self.needs == "low":
            return not found or bool(found & LOW)
        return self.needs != "differ" or len(dtypes) < 2 or len(found) > 1


NEEDS = ("differ", "low", "integer", "any")
"""Of the dtypes of a message, beyond being floating: ``differ``, at least one ``low``, at least one ``integer``."""


@cache
def _compile(pattern: str, roles: tuple[str, ...]) -> re.Pattern[str]:
    for role in roles:
        pattern = pattern.replace("{" + role + "}", f"(?P<{role}>{PATTERN})")
    return re.compile(pattern)


@cache
def families() -> dict[str, Family]:
    """Every family by name, in the order of :data:`KINDS` and of the files."""
    found: dict[str, Family] = {}
    for kind in KINDS:
        text = resources.files("amplint.explain.families").joinpath(f"{kind}.toml").read_text(encoding="utf-8")
        for name, table in parse_toml(text).items():
            found[name] = _family(name, kind, table)
    return found


def _family(name: str, kind: str, table: dict[str, Any]) -> Family:
    return Family(
        name=name,
        kind=kind,
        title=table["title"],
        says=table.get("says", table["title"]),
        patterns=tuple(table["match"]),
        examples=tuple(table["examples"]),
        roles=table.get("roles", {}),
        meaning=_line(table["meaning"]),
        origin=_line(table["origin"]),
        narrowing=tuple(
            Narrowing(tuple((role, kind) for role, kind in item.items() if role != "says"), _line(item["says"]))
            for item in table.get("narrowing", [])
        ),
        remedies=tuple(Remedy(_line(r["do"]), r.get("code", ""), r.get("rule")) for r in table["remedies"]),
        codes=tuple(table["codes"]),
        warning=table.get("warning", False),
        needs=table.get("needs", "differ" if kind == "dtype" else "any"),
    )


def _line(text: str) -> str:
    return " ".join(text.split())


# ---- the search ---------------------------------------------------------------------------------------------------

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_FRAMING = " \t│|┃"
_UNBROKEN = 200_000
"""Characters at the end of a text in which broken lines are put together again."""
_PREFIX = re.compile(r"^\s*(?:\[(?:rank|default)?\d+\]:?|\(\w[\w.]* pid=\d+[^)]*\)|\d+:|E(?= {3}))\s*")


def without_colours(text: str) -> str:
    """The text without terminal escapes, with line ends as ``\\n``."""
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def recognise(text: str) -> tuple[Recognised, ...]:
    """The error texts that a text of any length holds, best first.

    Errors come before warnings, and what is printed first before what follows from it; the same family with the same
    dtypes comes once. Empty where nothing is known, as for errors that precision has no part in. Where no line matches,
    lines that a terminal or a frame around the message has broken are tried as one.
    """
    text = without_colours(text)
    found = list(_search(text))
    if not found:
        unbroken = " ".join(line.strip(_FRAMING) for line in text[-_UNBROKEN:].split("\n"))
        found = list(_search(unbroken, whole=False))
    found.sort(key=lambda hit: hit[0])
    distinct: dict[tuple[str, tuple[tuple[str, str], ...]], Recognised] = {}
    for _, recognised in _unshadowed(found):
        distinct.setdefault((recognised.family, recognised.dtypes), recognised)
    return tuple(distinct.values())


_Hit = tuple[tuple[bool, int, int], Recognised]


def _search(text: str, *, whole: bool = True) -> Iterator[_Hit]:
    for family in families().values():
        for pattern, literal in zip(family.patterns, family.literals, strict=True):
            if literal not in text:
                continue
            for match in family.compiled(pattern).finditer(text):
                dtypes = _dtypes(match, family)
                if dtypes is None or not family.accepts(dtypes):
                    continue
                groups = match.groupdict().items()
                values = tuple((name, value) for name, value in groups if name not in family.roles and value)
                line = _line_of(text, match) if whole else match[0]
                order = (family.warning, match.start(), -(match.end() - match.start()))
                yield order, Recognised(family.name, family.kind, family.codes, dtypes, line, values)


def _dtypes(match: re.Match[str], family: Family) -> tuple[tuple[str, str], ...] | None:
    """(role, dtype) in the order in which the message names them; None where one is no dtype at all."""
    roles = [role for role in family.roles if match.groupdict().get(role)]
    found = [(role, dtype_of(match[role])) for role in sorted(roles, key=match.start)]
    known = tuple((role, dtype) for role, dtype in found if dtype is not None)
    return known if len(known) == len(found) else None


def _line_of(text: str, match: re.Match[str]) -> str:
    start = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.start())
    return _PREFIX.sub("", text[start : end if end >= 0 else len(text)]).strip()


def _unshadowed(found: list[_Hit]) -> Iterator[_Hit]:
    """Without the matches that lie within a longer one."""
    reach: dict[bool, int] = {}
    for order, recognised in found:
        warning, start, length = order
        if start - length <= reach.get(warning, -1):
            continue
        reach[warning] = start - length
        yield order, recognised
