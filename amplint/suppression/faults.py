"""What is to be said of the comments of a file that are meant to silence findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.claims.suspect import Suspect
from amplint.finding import Applicability, Fix
from amplint.frozen import dataclass
from amplint.judge.certainty import FORCED
from amplint.rule_base import finding_of
from amplint.source import Location, Span
from amplint.suppression.directives import NO_ROWS, Form
from amplint.suppression.removal import without
from amplint.suppression.unused import UNUSED, names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from amplint.finding import Finding
    from amplint.source import Source
    from amplint.suppression.directives import Directive, Selector
    from amplint.suppression.hiding import Suppressions
    from amplint.suppression.unused import Rules


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
    own = [code for code in unused if names(code, UNUSED)]
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
