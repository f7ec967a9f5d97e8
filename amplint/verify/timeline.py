"""The page of a verified run: what each source line did to dtypes, in one HTML file that needs nothing else."""

from __future__ import annotations

import html
import json
import re
import tokenize
from dataclasses import asdict, dataclass, fields
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amplint.files import display_path
from amplint.verify.event import KINDS, Event

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

#: Everything is in the page; a browser is told to load nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


@dataclass(frozen=True)
class TimelineRun:
    """One run of one target: a scenario in a mode.

    Attributes:
        target: ``/abs/model.py::Block``.
        scenario, mode, device, run_on, verdict: As in ``amplint verify --output-format json``.
        torch: The version that ran.
        events: As ``DtypeFlow.events`` gives them.
        error: Why the verdict is what it is; may have several lines.
        failure: The event at which the run stopped.
        first_nonfinite: The event that made the first inf or NaN.
        codes: Rules whose findings the verdict is about.
        seconds: How long the run took.
        reproduce: The command that runs this again.
        dropped: Events that were not kept because there were too many.
    """

    target: str
    scenario: str
    mode: str
    device: str
    run_on: str
    verdict: str
    torch: str
    events: tuple[Event, ...]
    error: str | None = None
    failure: Event | None = None
    first_nonfinite: Event | None = None
    codes: tuple[str, ...] = ()
    seconds: float = 0.0
    reproduce: str = ""
    dropped: int = 0

    @classmethod
    def of(cls, flow: Mapping[str, Any], **about: Any) -> TimelineRun:
        """A run from ``DtypeFlow.to_json()``; ``about`` gives the fields that an instrument does not know."""
        return cls.from_json({**_DEFAULTS, **about, **flow})

    def to_json(self) -> dict[str, Any]:
        """Fields by name; tuples become lists in JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TimelineRun:
        """The inverse of ``to_json``, through JSON or not.

        Raises:
            KeyError: If a field is missing.
        """
        values = {field.name: data[field.name] for field in fields(cls)}
        values["events"] = tuple(Event.from_json(event) for event in values["events"])
        values["codes"] = tuple(values["codes"])
        for name in ("failure", "first_nonfinite"):
            values[name] = None if values[name] is None else Event.from_json(values[name])
        return cls(**values)


_DEFAULTS: dict[str, Any] = {"error": None, "codes": (), "seconds": 0.0, "reproduce": ""}


@dataclass(frozen=True)
class Totals:
    """Occurrences over a run, and the bytes of the casts and of silent promotion."""

    autocast: int
    autocast_bytes: int
    explicit: int
    explicit_bytes: int
    promotions: int
    promotion_bytes: int
    nonfinite: int
    failures: int


def totals(events: Iterable[Event]) -> Totals:
    """What the events come to."""
    count: dict[str, int] = {}
    moved: dict[str, int] = {}
    for event in events:
        count[event.kind] = count.get(event.kind, 0) + event.count
        moved[event.kind] = moved.get(event.kind, 0) + event.bytes
    return Totals(
        autocast=count.get("autocast-cast", 0),
        autocast_bytes=moved.get("autocast-cast", 0),
        explicit=count.get("explicit-cast", 0),
        explicit_bytes=moved.get("explicit-cast", 0),
        promotions=count.get("promotion", 0),
        promotion_bytes=moved.get("promotion", 0),
        nonfinite=count.get("nonfinite", 0),
        failures=count.get("failed", 0),
    )


def sources_of(runs: Iterable[TimelineRun]) -> dict[str, str]:
    """The text of every file that an event lies in, by the event's filename; files that cannot be read are left out."""
    names = {event.filename for run in runs for event in [*run.events, *filter(None, [run.failure])] if event.filename}
    texts: dict[str, str] = {}
    for name in sorted(names):
        try:
            with tokenize.open(name) as file:
                texts[name] = file.read()
        except (OSError, SyntaxError, UnicodeDecodeError):
            continue
    return texts


def render(runs: Sequence[TimelineRun], sources: Mapping[str, str]) -> str:
    """The page, with one view for each run.

    Args:
        runs: At least one, in the order in which they are offered.
        sources: Text by filename. Lines of files that are not there show without their text.

    Raises:
        ValueError: If there is no run.
    """
    if not runs:
        raise ValueError("nothing to show: no run was traced")
    names = sorted({event.filename for run in runs for event in _of(run)})
    targets = list(dict.fromkeys(_shown_target(run.target) for run in runs))
    title = targets[0] if len(targets) == 1 else f"{len(targets)} targets"
    data = {
        "kinds": KINDS,
        "files": [{"name": _shown(name), "lines": sources.get(name, "").splitlines()} for name in names],
        "runs": [_run(run, {name: i for i, name in enumerate(names)}) for run in runs],
    }
    parts = {
        "policy": html.escape(_POLICY),
        "title": html.escape(title),
        "style": _part("timeline.css"),
        "plain": _plain(runs),
        "data": _embedded(data),
        "script": _part("timeline.js"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _part("timeline.html"))


def _part(name: str) -> str:
    return resources.files("amplint.verify").joinpath(name).read_text(encoding="utf-8")


def _of(run: TimelineRun) -> list[Event]:
    return [*run.events, *filter(None, [run.failure, run.first_nonfinite])]


def _shown(filename: str) -> str:
    """Relative to the current folder or to where packages are installed: a page says nothing of the machine."""
    if not filename:
        return "(no source line)"
    path = Path(filename)
    for folder in ("site-packages", "dist-packages"):
        if folder in path.parts:
            last = len(path.parts) - 1 - path.parts[::-1].index(folder)
            return "/".join(path.parts[last + 1 :])
    shown = display_path(path)
    return "/".join(path.parts[-2:]) if Path(shown).is_absolute() else shown


def _shown_target(target: str) -> str:
    filename, separator, name = target.partition("::")
    return f"{_shown(filename)}{separator}{name}"


def _run(run: TimelineRun, files: Mapping[str, int]) -> dict[str, Any]:
    def event(event: Event) -> dict[str, Any]:
        return {**event.to_json(), "filename": files[event.filename]}

    return {
        **run.to_json(),
        "target": _shown_target(run.target),
        "events": [event(each) for each in run.events],
        "failure": event(run.failure) if run.failure is not None else None,
        "first_nonfinite": event(run.first_nonfinite) if run.first_nonfinite is not None else None,
        "totals": asdict(totals(run.events)),
    }


def _embedded(data: object) -> str:
    """JSON that neither ends the element that holds it nor starts another."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _plain(runs: Sequence[TimelineRun]) -> str:
    """A table for readers without scripts."""
    rows = []
    for run in runs:
        place = f"{_shown(run.failure.filename)}:{run.failure.row}" if run.failure is not None else ""
        cells = (_shown_target(run.target), run.scenario, run.mode, run.verdict, place, run.error or "")
        rows.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    head = "".join(f"<th>{name}</th>" for name in ("target", "scenario", "mode", "verdict", "failed at", "error"))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
