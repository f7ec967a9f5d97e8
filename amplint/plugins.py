"""How rules are found and chosen.

amplint imports no rule statically. Rules come in packs: a pack is a module or package with a function ``all_rules()``
that returns instances of :class:`amplint.rule.Rule`. The built-in ones are such a pack, which is always there. Others
are announced by an installed package, as an entry point of the group :data:`GROUP`, or named in a configuration. A pack
may have ``announced_rules()`` too, which says what is known of them before they are imported.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

from amplint.config import UsageError
from amplint.frozen import dataclass
from amplint.nearest import nearest
from amplint.rule_base import CODE, Announced
from amplint.suppression.unused import UNUSED
from amplint.unparsable import UNPARSABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from amplint.config import Config
    from amplint.rule_base import Rule

BUILT_IN = "amplint_rules"
GROUP = "amplint.rules"
ALL = "ALL"
OWN = (UNUSED, UNPARSABLE)
"""amplint's own rules, which need no facts."""

_NEEDED = ("code", "name", "severity", "tokens")
"""What a rule sets, without which nothing can be said of it."""


@dataclass(frozen=True, slots=True)
class Pack:
    """The module of a pack, and who asks for it: a file of configuration or an installed package."""

    module: str
    asked_by: str = ""


class PackError(UsageError):
    """A pack cannot be had; the line names who asks for it."""

    def __init__(self, pack: Pack, text: str) -> None:
        said = f"the rule pack {pack.module} {text}".replace("\n", " ")
        super().__init__(f"{pack.asked_by}: {said}" if pack.asked_by else said)


def installed_packs() -> tuple[Pack, ...]:
    """The packs that installed packages announce, by the order of their entry points' names."""
    if not _may_be_installed():
        return ()
    from importlib.metadata import entry_points

    return tuple(
        Pack(entry.module, f"the installed package {entry.dist.name}" if entry.dist is not None else "")
        for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    )


def _may_be_installed() -> bool:
    """Whether an installed package may announce a pack: no where no metadata on the way of imports mentions any.

    The standard library's answer takes longer than a small check; it is asked about what does not lie in folders.
    """
    if any(hasattr(finder, "find_distributions") for finder in sys.meta_path if finder is not PathFinder):
        return True
    return any(os.path.isfile(folder) or _mentions_packs(folder or ".") for folder in dict.fromkeys(sys.path))


def _mentions_packs(folder: str) -> bool:
    try:
        names = [name for name in os.listdir(folder) if name.lower().endswith((".dist-info", "egg-info"))]
    except OSError:
        return False
    for name in names:
        try:
            with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                if GROUP.encode() in file.read():
                    return True
        except OSError:
            continue
    return False


def named_packs(config: Config) -> tuple[Pack, ...]:
    """The packs that the files of a configuration name."""
    return tuple(Pack(name, str(part.path)) for part in config.parts for name in part.plugins)


def load_rules(packs: Iterable[Pack] = ()) -> tuple[Rule, ...]:
    """The built-in rules, those of the packs, and amplint's own, by code. Raises PackError."""
    return tuple(rule.imported() for rule in known_rules(packs))


def known_rules(packs: Iterable[Pack] = ()) -> tuple[Announced, ...]:
    """The same, each imported only if its pack does not announce it. Raises PackError.

    A pack that is asked for twice is loaded once.
    """
    known: dict[str, Announced] = {key: rule for rule in OWN for key in (rule.code, rule.name)}
    chosen: dict[str, Pack] = {}
    for pack in (Pack(BUILT_IN), *packs):
        chosen.setdefault(pack.module, pack)
    for pack in chosen.values():
        for rule in _rules_of(pack):
            for kind, key in (("code", rule.code), ("name", rule.name)):
                other = known.setdefault(key, rule)
                if other is not rule:
                    brings = f"brings the {kind} {key} ({_origin(rule)})"
                    raise PackError(pack, f"{brings}, which another rule has: {_origin(other)}")
    rules = {rule.code: rule for rule in known.values()}
    return tuple(rules[code] for code in sorted(rules))


def _rules_of(pack: Pack) -> Iterator[Announced]:
    """What a pack announces, else what its ``all_rules()`` returns; each marked with the pack if that is another's."""
    try:
        module = import_module(pack.module)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and f"{pack.module}.".startswith(f"{error.name}."):
            raise PackError(pack, _not_installed(pack.module)) from error
        raise PackError(pack, f"cannot be imported: {_told(error)}") from error
    if not callable(getattr(module, "all_rules", None)):
        raise PackError(pack, f"has no function all_rules() that returns its rules ({_place(module.__file__)})")
    try:
        rules = list(getattr(module, "announced_rules", module.all_rules)())
    except Exception as error:
        raise PackError(pack, f"fails in all_rules(): {_told(error)}") from error
    for rule in rules:
        if not isinstance(rule, Announced):
            raise PackError(pack, f"returns from all_rules() what is no instance of amplint.rule.Rule: {rule!r}")
        missing = [name for name in _NEEDED if not hasattr(rule, name)]
        if missing:
            raise PackError(pack, f"has a rule without {', '.join(missing)}: {_origin(rule)}")
        if not CODE.fullmatch(rule.code):
            wanted = "capital letters and three digits, such as MINE101"
            raise PackError(pack, f"has a rule whose code '{rule.code}' is not {wanted}: {_origin(rule)}")
        if pack.module != BUILT_IN:
            rule.pack = pack.module
        yield rule


def _not_installed(module: str) -> str:
    if module == BUILT_IN:
        return "is not installed (in a source checkout, run `pip install -e .`)"
    hint = f" (did you mean '{module.replace('-', '_')}'?)" if "-" in module else ""
    return f"is not installed beside amplint, in {sys.prefix}{hint}"


def _told(error: BaseException) -> str:
    """An error, and the line that raised it."""
    import traceback

    said = f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, SyntaxError) or not frames:
        return said
    return f"{said} ({frames[-1].filename}, line {frames[-1].lineno})"


def _place(file: str | None) -> str:
    return file or "a folder without an __init__.py"


def _origin(announced: Announced) -> str:
    rule = announced.imported()
    return f"{type(rule).__module__}.{type(rule).__qualname__}"


def find_rule(rules: Iterable[Rule], text: str) -> Rule:
    """The rule of that code or name. Raises UsageError that names the nearest one."""
    rules = list(rules)
    for rule in rules:
        if text.upper() == rule.code or text.lower() == rule.name:
            return rule
    raise UsageError(f"unknown rule '{text}'{nearest(text, [*(r.code for r in rules), *(r.name for r in rules)])}")


def check_selectors(rules: Iterable[Announced], selectors: Iterable[str]) -> None:
    """Raise UsageError for a selector that matches none of the rules."""
    rules = list(rules)
    for selector in selectors:
        if not any(_weight(selector, rule) for rule in rules):
            known = [ALL, *(rule.code for rule in rules), *(rule.name for rule in rules)]
            raise UsageError(f"unknown rule selector '{selector}'{nearest(selector, known)}")


def select_rules(
    rules: Sequence[Announced], select: Sequence[str], ignore: Sequence[str], extend_select: Sequence[str] = ()
) -> tuple[Announced, ...]:
    """The rules that the selectors (codes, prefixes of codes, names, ``ALL``) leave on.

    Where a rule is both selected and ignored the longer selector wins, and ``ignore`` on a tie. An empty ``select``
    stands for the rules that are on by default; a file that does not parse is reported unless AMP901 is ignored.
    """
    chosen = []
    for rule in rules:
        wanted = max((_weight(selector, rule) for selector in (*select, *extend_select)), default=0)
        if (not select and rule.default) or rule is UNPARSABLE:
            wanted = max(wanted, 1)
        unwanted = max((_weight(selector, rule) for selector in ignore), default=0)
        if wanted > unwanted:
            chosen.append(rule)
    return tuple(chosen)


def unmatched(rules: Iterable[Announced], selectors: Sequence[str]) -> tuple[Announced, ...]:
    """The rules that no selector matches."""
    return tuple(rule for rule in rules if not any(_weight(selector, rule) for selector in selectors))


def named(rules: Sequence[Announced], selectors: Sequence[str]) -> frozenset[str]:
    """The codes of the rules that a selector names: by the whole code or the name."""
    return frozenset(rule.code for rule in rules for one in selectors if one.upper() == rule.code or one == rule.name)


def _weight(selector: str, rule: Announced) -> int:
    """How specifically a selector matches a rule; 0 where it does not."""
    if selector.lower() == rule.name:
        return 100
    if selector.upper() == ALL:
        return 1
    return len(selector) + 1 if selector and rule.code.startswith(selector.upper()) else 0
