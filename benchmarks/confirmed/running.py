"""One library: ``amplint check`` says what there is to confirm, ``amplint verify`` runs it, file by file."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from children import environment
from figures.results import version

from confirmed.outcome import ALONE, ANOTHER, CONFIRMED, OUTCOME, RAN, UNREACHED, UNRUNNABLE, Library, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ecosystem.releases import Release

NUMERIC = ("AMP301", "AMP302", "AMP303")
"""Rules whose warnings a run can decide: overflow and underflow."""
_FOLDERS = re.compile(r"(?<![\w.])(?:/[\w.+@-]+)+/")
_LONGEST = 240


class RunError(Exception):
    """A library could not be run."""


@dataclass(frozen=True, slots=True)
class Work:
    """Where the answers of ``amplint verify`` are kept, and the seconds that it may take for a target."""

    folder: Path
    seconds: float


def run(release: Release, work: Work, say: Callable[[str], None]) -> tuple[Library, list[Outcome]]:
    """Run what the installed release has of errors and numeric warnings. Raises RunError.

    What this version of amplint has answered before of a file is not run again.
    """
    root, files = _installed(release)
    by_file: dict[str, list[dict[str, Any]]] = defaultdict(list)
    others = 0
    for finding in _check(release, root, files):
        if finding["severity"] == "error" or finding["code"] in NUMERIC:
            by_file[Path(finding["filename"]).relative_to(root).as_posix()].append(finding)
        else:
            others += 1
    outcomes: list[Outcome] = []
    for number, (path, findings) in enumerate(sorted(by_file.items()), 1):
        say(f"{release}: {path} ({number} of {len(by_file)}), {len(findings)} findings")
        rows, failure = _verify(release, root, path, findings, work)
        outcomes += _outcomes(release, path, findings, rows, failure)
    return Library(release.package, release.version, version(), others), outcomes


def _installed(release: Release) -> tuple[Path, set[str]]:
    """The folder that an installed release lies in, and its Python files."""
    try:
        found = importlib.metadata.distribution(release.package)
    except importlib.metadata.PackageNotFoundError as error:
        raise RunError(f"{release.package} is not installed: pip install {release.requirement}") from error
    if found.version != release.version:
        raise RunError(f"{release.package} {found.version} is installed: pip install {release.requirement}")
    files = {file.as_posix() for file in found.files or () if file.suffix == ".py" and ".." not in file.parts}
    if not files:
        raise RunError(f"{release} has no Python file")
    return Path(str(found.locate_file(""))).resolve(), files


def _check(release: Release, root: Path, files: set[str]) -> Iterator[dict[str, Any]]:
    """The findings at default settings."""
    tops = [str(root / top) for top in sorted({file.partition("/")[0] for file in files})]
    done = _amplint("check", "--no-cache", "--exit-zero", *tops)
    if done.returncode != 0:
        raise RunError(f"{release}: amplint check left with status {done.returncode}: {done.stderr.strip()}")
    for finding in json.loads(done.stdout):
        if Path(finding["filename"]).relative_to(root).as_posix() in files:
            yield finding


def _verify(
    release: Release, root: Path, path: str, findings: Sequence[dict[str, Any]], work: Work
) -> tuple[list[dict[str, Any]], str]:
    """The rows of ``amplint verify`` for a file, or none and why."""
    codes = sorted({finding["code"] for finding in findings})
    asked = f"{version()} {work.seconds} {(root / path).read_bytes()!r} {codes}"
    kept = work.folder / str(release) / f"{hashlib.sha256(asked.encode()).hexdigest()[:20]}.json"
    if not kept.exists():
        options = [f"--select={','.join(codes)}", "--run-on=cpu", f"--timeout={work.seconds:g}"]
        try:
            done = _amplint("verify", *options, str(root / path), seconds=120 + 3 * work.seconds * len(findings))
            rows = json.loads(done.stdout)
        except subprocess.TimeoutExpired:
            return [], "verify did not end in time"
        except ValueError:
            return [], f"verify left with status {done.returncode}: {(done.stderr.strip().splitlines() or [''])[-1]}"
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(rows), encoding="utf-8")
    rows = json.loads(kept.read_text(encoding="utf-8"))
    return rows, ""


def _amplint(command: str, *options: str, seconds: float | None = None) -> subprocess.CompletedProcess[str]:
    asked = [sys.executable, "-m", "amplint", command, "--isolated", "--output-format=json", *options]
    return subprocess.run(asked, capture_output=True, text=True, check=False, timeout=seconds, env=environment())


def _outcomes(
    release: Release, path: str, findings: Iterable[dict[str, Any]], rows: Sequence[dict[str, Any]], failure: str
) -> Iterator[Outcome]:
    whole = {row["target"] for row in rows if row["mode"] == "train"}
    said: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for row in rows:
        if row["fingerprint"] is not None:
            said[row["fingerprint"], row["scenario"]].append(
                (outcome_of(row, alone=row["target"] not in whole), row["error"] or "")
            )
    for finding in findings:
        for scenario in finding["scenarios"]:
            found = said[finding["fingerprint"], scenario] or [(UNRUNNABLE, failure or "verify said nothing of it")]
            outcome, error = min(found, key=lambda one: OUTCOME.index(one[0]))
            yield Outcome(
                release.package,
                release.version,
                path,
                finding["location"]["row"],
                finding["code"],
                finding["fingerprint"],
                scenario,
                finding["severity"],
                finding["certainty"],
                outcome,
                _one_line(error),
                version(),
            )


def outcome_of(row: dict[str, Any], *, alone: bool) -> str:
    """What a row of ``amplint verify`` says of its finding. ``alone``: of the flagged operation by itself."""
    if row["verdict"] in ("not-runnable", "needs-gpu"):
        return UNRUNNABLE
    if alone:
        return ALONE
    if row["verdict"] == "confirmed":
        return CONFIRMED
    if row["error"]:
        return ANOTHER
    return RAN if row["verdict"] == "not-reproduced" else UNREACHED


def _one_line(text: str) -> str:
    """A text without the folders of this machine."""
    return _FOLDERS.sub("", " ".join(text.split()))[:_LONGEST]
