"""The page of a verified run: what each source line did to dtypes, in one HTML file that needs nothing else."""

from __future__ import annotations

import html
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amplint.files import display_path
from amplint.frozen import dataclass
from amplint.html_page import embedded, filled
from amplint.verify.event import KINDS, Event
from amplint.verify.plain import Plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True)
class TimelineRun(Plain):
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


def totals(events: Iterable[Event]) -> dict[str, dict[str, int]]:
    """How often each kind of event occurred, and how many bytes that moved."""
    found = {str(kind): {"count": 0, "bytes": 0} for kind in KINDS}
    for event in events:
        found[event.kind]["count"] += event.count
        found[event.kind]["bytes"] += event.bytes
    return found


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
    return filled("amplint.verify", "timeline", title=html.escape(title), plain=_plain(runs), data=embedded(data))


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
    data = run.to_json()
    for event in (*data["events"], data["failure"], data["first_nonfinite"]):
        if event is not None:
            event["filename"] = files[event["filename"]]
    return {**data, "target": _shown_target(run.target), "totals": totals(run.events)}


def _plain(runs: Sequence[TimelineRun]) -> str:
    """A table for readers without scripts."""
    rows = []
    for run in runs:
        place = f"{_shown(run.failure.filename)}:{run.failure.row}" if run.failure is not None else ""
        cells = (_shown_target(run.target), run.scenario, run.mode, run.verdict, place, run.error or "")
        rows.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    head = "".join(f"<th>{name}</th>" for name in ("target", "scenario", "mode", "verdict", "failed at", "error"))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
