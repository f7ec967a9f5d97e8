"""An answer as text for people and as data for programs."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from amplint.explain.locate import Line as Position
from amplint.explain.locate import Place
from amplint.files import display_path
from amplint.finding import Applicability
from amplint.report.full import render as render_findings
from amplint.report.json import as_json as finding_as_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.explain.answer import Answer, Explained, Located
    from amplint.explain.frames import Frame
    from amplint.finding import Finding
    from amplint.report import Context, Line

WIDTH = 100
REMEDIES, RULES, OTHERS = 3, 3, 3
"""How many are shown of each."""
_HEADING = "bold"
_FIX = {Applicability.SAFE: " --fix", Applicability.UNSAFE: " --fix --unsafe-fixes"}
_NOTHING = (
    "amplint check reports nothing here: the dtypes come from a caller, a checkpoint or a setting, or it fails in "
    "float32 too."
)
_HOW = {
    "line": "a finding lies on this line",
    "cause": "a finding rests on this line",
    "function": "a finding lies in this function",
}
_RUN = ("dtype", "overflow", "unsupported", "silent", "api")
_STATES = {
    Position.SAME: "",
    Position.UNSEEN: "",
    Position.MOVED: " (the file was edited since: there it was line {row})",
    Position.GONE: " (the file was edited since: the line is no longer there)",
}


# ---- for people ---------------------------------------------------------------------------------------------------


def full(answer: Answer, context: Context) -> Iterator[Line]:
    """What happened, why, what to do, and where."""
    first, *others = answer.matches
    colour = "yellow" if first.family.warning else "red"
    yield [(f"{first.match.kind}: ", f"bold {colour}"), (first.says, "bold")]
    yield []
    yield from _wrapped(first.match.text, "    ", style="dim")
    yield []
    yield from _why(first, located=bool(answer.located))
    yield []
    yield from _what_to_do(answer, first)
    if answer.frames or first.codes:
        yield []
        yield from _where(answer, first, context)
    for other in others[:OTHERS]:
        yield []
        yield [("Also in the text: ", _HEADING), (other.says, "")]
        yield from _wrapped(other.match.text, "    ", style="dim")


def _why(explained: Explained, *, located: bool) -> Iterator[Line]:
    yield [("Why", _HEADING)]
    for paragraph in explained.why:
        yield from _wrapped(paragraph, "  ")
    roles = explained.family.roles
    if explained.match.dtypes:
        operands = ", ".join(f"{roles[role]} = {dtype}" for role, dtype in explained.match.dtypes)
        yield from _wrapped(f"Operands: {operands}", "  ")
    if not located:
        yield from _wrapped(f"Usual origin: {explained.family.origin}.", "  ")


def _what_to_do(answer: Answer, explained: Explained) -> Iterator[Line]:
    yield [("What to do", _HEADING)]
    steps = [(remedy.do, remedy.code) for remedy in explained.remedies]
    fix = answer.located[0].shown.fix if answer.located else None
    if fix is not None:
        steps.insert(0, (f"{fix.message}, as shown below:", _fix_command(answer.located[0].finding)))
    for number, (do, code) in enumerate(steps[:REMEDIES], 1):
        yield from _wrapped(f"{number}. {do}", "  ", then="     ")
        for line in code.splitlines():
            yield [(f"         {line}".rstrip(), "cyan")]


def _where(answer: Answer, explained: Explained, context: Context) -> Iterator[Line]:
    yield [("Where", _HEADING)]
    if answer.located:
        yield from _found(answer.located, context)
    elif answer.places:
        yield from _wrapped(f"{_position(answer.places[0])}: {_NOTHING}", "  ")
    elif answer.frames:
        yield from _wrapped(
            f"No file of the traceback is here ({_named(answer.frames)}): run this where the code is.", "  "
        )
    commands = list(_commands(answer, explained))
    width = max((len(what) for what, _ in commands), default=0)
    for what, command in commands:
        yield [(f"  {what.ljust(width)}  ", ""), (command, "cyan")]


def _found(located: tuple[Located, ...], context: Context) -> Iterator[Line]:
    best = located[0]
    yield from _wrapped(f"{_position(best.place)}: {_HOW[best.how]}.", "  ")
    yield []
    for line in render_findings([best.shown], context):
        yield [("  ", ""), *line]
    for other in located[1 : 1 + OTHERS]:
        finding = other.finding
        place = f"{display_path(finding.filename)}:{finding.span.start.row}"
        yield [("  Also ", ""), (finding.code, "bold"), (f" {place}: {finding.message}", "")]
    if len(located) > 1:
        yield []


def _position(place: Place) -> str:
    function = f" in {place.frame.function}" if place.frame.function else ""
    edited = _STATES[place.line].format(row=place.frame.row)
    return f"{display_path(place.path)}:{place.row}{function}{edited}"


def _named(frames: tuple[Frame, ...]) -> str:
    own = [frame for frame in frames if not frame.of_torch and not frame.of_python] or list(frames)
    return f"{own[-1].path}:{own[-1].row}"


def _commands(answer: Answer, explained: Explained) -> Iterator[tuple[str, str]]:
    """What to type next, and why."""
    codes = (answer.located[0].finding.code,) if answer.located else explained.codes[:RULES]
    if codes and not answer.located:
        yield "find it in the code", f"amplint check . --select {','.join(codes)}"
    if answer.target is not None and explained.match.kind in _RUN:
        yield "see it run", f"amplint verify {display_path(answer.target[0])}::{answer.target[1]}"
    for code in codes[:1]:
        yield "read about it", f"amplint explain {code}"


def _fix_command(finding: Finding) -> str:
    """The command that applies a finding's fix; empty where it is only shown."""
    assert finding.fix is not None
    if finding.fix.applicability is Applicability.DISPLAY:
        return ""
    return f"amplint check {display_path(finding.filename)} --select {finding.code}{_FIX[finding.fix.applicability]}"


def _wrapped(text: str, indent: str, *, then: str | None = None, style: str = "") -> Iterator[Line]:
    lines = textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=then or indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return ([(line, style)] for line in lines)


# ---- for programs -------------------------------------------------------------------------------------------------


def document(answer: Answer, context: Context) -> dict[str, Any]:
    """The answer with stable keys."""
    places = {place.frame: place for place in answer.places}
    return {
        "matches": [_match(explained) for explained in answer.matches],
        "frames": [_frame(frame, places.get(frame)) for frame in answer.frames],
        "findings": [
            {
                **finding_as_json(located.finding, context),
                "frame": answer.frames.index(located.place.frame),
                "relation": located.how,
            }
            for located in answer.located
        ],
        "verify": f"{answer.target[0]}::{answer.target[1]}" if answer.target is not None else None,
    }


def _match(explained: Explained) -> dict[str, Any]:
    match, family = explained.match, explained.family
    return {
        "family": match.family,
        "kind": match.kind,
        "codes": list(explained.codes),
        "dtypes": [{"role": role, "operand": family.roles[role], "dtype": dtype} for role, dtype in match.dtypes],
        "text": match.text,
        "says": explained.says,
        "meaning": " ".join(explained.why),
        "origin": family.origin,
        "remedies": [{"message": remedy.do, "code": remedy.code or None} for remedy in explained.remedies],
    }


def _frame(frame: Frame, place: Place | None) -> dict[str, Any]:
    return {
        **{name: getattr(frame, name) for name in ("path", "row", "function")},
        "text": frame.text or None,
        "filename": str(place.path) if place is not None else None,
        "row_now": place.row if place is not None else None,
        "line": place.line.value if place is not None else None,
    }
