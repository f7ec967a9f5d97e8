"""AMP900, amplint's own code: a comment that is meant to silence findings and silences none."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from amplint.claims.suspect import Suspect
from amplint.finding import Applicability, Fix, Severity
from amplint.frozen import dataclass
from amplint.judge.certainty import FORCED
from amplint.nearest import nearest
from amplint.rule_base import Rule, finding_of
from amplint.source import Location, Span
from amplint.suppression.directives import NO_ROWS, Form
from amplint.suppression.removal import without

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from amplint.finding import Finding
    from amplint.infer.state.facts import FileFacts
    from amplint.source import Source
    from amplint.suppression.directives import Directive, Selector
    from amplint.suppression.hiding import Suppressions


class UnusedSuppression(Rule):
    """A comment is meant to silence findings, and silences none.

    What it does
    ------------
    Reports a code in `# amplint: ignore[...]`, `# amplint: ignore-file[...]` or `# noqa: ...` of which nothing is found
    there, a comment without codes that silences nothing, a code that no rule has, and spellings that amplint does not
    read, such as `# amplint: disable=AMP104`. A code of a rule that this run does not select is left alone, and so are
    a code that silences what only `--pedantic` shows, codes of other tools, and `# noqa` without codes.

    Why it is bad
    -------------
    A mistyped comment silences nothing, and its author thinks that it does. One whose finding is gone will silence the
    next finding on its line, which nobody has looked at.

    How it shows
    ------------
    Nothing happens when the code runs.

    Example
    -------
    ```python
    y = x.float()  # amplint: ignore[AMP104]  nothing is found here any more
    ```

    Fix safety
    ----------
    Safe: the dead code is taken out of the comment, or the comment where nothing is left of it. Reasons and what other
    tools read stay. Unsafe for a code whose letters no rule has: it may be one of a rule pack that is not installed.
    `# amplint: ignore[AMP104, AMP900]` keeps a comment that is not used at the moment.
    """

    code = "AMP900"
    name = "unused-suppression"
    severity = Severity.WARNING
    fix = Applicability.SAFE
    tokens = ()

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        return ()


UNUSED = UnusedSuppression()


class Rules:
    """What comments are judged by: the rules of a run, and all those that a comment may name.

    ``known`` is None where a comment may name rules that were not loaded.
    """

    def __init__(self, selected: Sequence[Rule], known: Sequence[Rule] | None) -> None:
        self._known = known
        self._named = known if known is not None else selected
        self._selected = frozenset(rule.code for rule in selected)
        self._families = tuple(sorted({letters[0] for rule in self._named if (letters := _LETTERS.match(rule.code))}))

    def may_report(self, data: bytes) -> bool:
        """Whether these bytes can hold a comment that is reported."""
        return UNUSED.code in self._selected and _mention(self._families).search(data) is not None

    def decide(self, selector: Selector) -> bool:
        """Whether this run finds all that a selector names and that is on by default."""
        named = [rule for rule in self._named if _names(selector, rule)]
        if self._known is None:
            named = [rule for rule in named if selector.text.upper() == rule.code or selector.text.lower() == rule.name]
        return any(rule.code in self._selected for rule in named) and self._all_on(named)

    def decide_all(self) -> bool:
        """Whether this run finds all that is on by default."""
        return self._known is not None and self._all_on(self._known)

    def _all_on(self, rules: Iterable[Rule]) -> bool:
        return all(rule.code in self._selected for rule in rules if rule.default)

    def unknown(self, selector: Selector) -> bool:
        """Whether no rule has that code, prefix or name."""
        return self._known is not None and not any(_names(selector, rule) for rule in self._known)

    def ours(self, selector: Selector) -> bool:
        """Whether a code of a ``noqa`` is ours and not another tool's."""
        letters = _LETTERS.match(selector.text.upper())
        return letters is not None and letters[0] in self._families and not self.unknown(selector)

    def of_other_packs(self, selector: Selector) -> bool:
        """Whether a code that no rule has may be one of a pack that is not loaded here: none has its letters."""
        letters = _LETTERS.match(selector.text)
        return letters is not None and letters[0] not in self._families

    def nearest(self, selector: Selector) -> str:
        """`` (did you mean 'x'?)``: a code for what has digits, else a name."""
        coded = any(sign.isdigit() for sign in selector.text)
        return nearest(selector.text, [rule.code if coded else rule.name for rule in self._named])


_LETTERS = re.compile(r"[A-Z]+")


@lru_cache(maxsize=8)
def _mention(families: tuple[str, ...]) -> re.Pattern[bytes]:
    codes = "|".join(families)
    return re.compile(rf"amplint|noqa[^\n]*(?:{codes})[0-9]".encode(), re.IGNORECASE)


def _names(selector: Selector, rule: Rule) -> bool:
    return rule.code.startswith(selector.text.upper()) or selector.text.lower() == rule.name


def reports(
    source: Source, suppressions: Suppressions, rules: Rules, wider: Callable[[], Iterable[Finding] | None], device: str
) -> list[Finding]:
    """What is to be said about the comments of a file, once they have silenced what they can.

    ``wider`` gives what a less strict run finds, None where it fails; it is asked where something seems unused. What
    silences what only that finds is left alone.
    """
    if any(fault.unused for fault in _faults(suppressions, rules)):
        found = wider()
        if found is None:
            return []
        suppressions.left(found)
    told = []
    for last in (False, True):
        for fault in [fault for fault in _faults(suppressions, rules) if fault.about_reports is last]:
            report = _report(source, fault, device)
            if last or not suppressions.hides_report(report, fault.directive):
                told.append(report)
    return told


@dataclass(frozen=True, slots=True)
class _Fault:
    """What is wrong with a comment: the codes of which nothing is found (``unused``), or that are no codes.

    No selectors stand for the whole comment. ``about_reports``: it is a code that could have silenced another report
    like this one. ``safe``: nothing else can rest on it.
    """

    directive: Directive
    message: str
    selectors: tuple[Selector, ...] = ()
    unused: bool = False
    about_reports: bool = False
    safe: bool = True


def _faults(suppressions: Suppressions, rules: Rules) -> Iterator[_Fault]:
    for one in suppressions.directives:
        if one.form is Form.FOREIGN:
            yield _Fault(one, f"{{comment}} is no comment that amplint reads: write `# {one.meant}`")
        elif one.form is Form.IGNORE_FILE and one.rows == NO_ROWS:
            yield _Fault(one, "{comment} counts only above the first statement of a file")
        elif one.blanket:
            if one.form is Form.IGNORE and rules.decide_all() and not suppressions.used(one, None):
                yield _Fault(one, "{comment} silences nothing", unused=True)
        elif not one.selectors:
            yield _Fault(one, "{comment} names no code, so it silences nothing")
        else:
            yield from _dead_codes(one, suppressions, rules)


def _dead_codes(one: Directive, suppressions: Suppressions, rules: Rules) -> Iterator[_Fault]:
    codes = [code for code in one.selectors if one.form is not Form.NOQA or rules.ours(code)]
    unknown = [code for code in codes if rules.unknown(code)]
    unused = [code for code in codes if code not in unknown and rules.decide(code) and not suppressions.used(one, code)]
    own = [code for code in unused if _names(code, UNUSED)]
    unused = [code for code in unused if code not in own]
    elsewhere = [code for code in unknown if rules.of_other_packs(code)]
    unknown = [code for code in unknown if code not in elsewhere]
    said = [_unknown(code, rules) for code in unknown]
    if unused:
        said.append(f"{' and '.join(code.text for code in unused)} in {{comment}} silences nothing")
    if said:
        yield _Fault(one, "; ".join(said), (*unknown, *unused), unused=bool(unused))
    if elsewhere:
        yield _Fault(one, "; ".join(_unknown(code, rules) for code in elsewhere), tuple(elsewhere), safe=False)
    if own:
        message = f"{' and '.join(code.text for code in own)} in {{comment}} silences nothing"
        yield _Fault(one, message, tuple(own), about_reports=True)


def _unknown(code: Selector, rules: Rules) -> str:
    return f"no rule has the code {code.text}{rules.nearest(code)}"


def _report(source: Source, fault: _Fault, device: str) -> Finding:
    one = fault.directive
    comment = source.line(one.row)[one.start : one.end]
    span = Span(Location(one.row, one.start + 1), Location(one.row, one.end + 1))
    edit = without(source, one, fault.selectors)
    whole = len(fault.selectors) in (0, len(one.selectors))
    level = Applicability.SAFE if fault.safe else Applicability.UNSAFE
    fix = Fix(level, "Remove the comment" if whole else "Take it out of the comment", (edit,))
    message = fault.message.replace("{comment}", f"`{comment}`")
    return finding_of(UNUSED, Suspect(span, span, message, (), FORCED), source.path, device, fix)
