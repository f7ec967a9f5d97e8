"""Baselines: files of findings that were there before, by fingerprint, which a run leaves out.

A baseline is JSON with one line for each finding, sorted, its paths relative to its own folder with ``/``: a change of
it is small, and it means the same in every checkout.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amplint.config import UsageError
from amplint.frozen import dataclass
from amplint.unparsable import UNPARSABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from amplint.finding import FileResult

FORMAT = "amplint-baseline"
VERSION = 1


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """A finding that a baseline knows: its file, as the baseline names it, its code and its fingerprint."""

    file: str
    code: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Baseline:
    """The file ``path``, and how often each entry stands in it."""

    path: Path
    entries: Mapping[Entry, int]

    def by_file(self) -> dict[str, dict[str, int]]:
        """How often each fingerprint is known, by the file as the baseline names it."""
        known: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for entry, count in self.entries.items():
            known[entry.file][entry.fingerprint] = count
        return known

    def name(self, file: Path) -> str:
        """How the baseline names a file."""
        return name_in(self.path.parent, file)

    def gone(self, results: Iterable[FileResult], selected: Mapping[Path, frozenset[str]]) -> int:
        """How many of its findings are no longer there: in files that are gone, and in files of this run.

        ``selected`` are the codes that were looked for in each file. Files that could not be judged say nothing.
        """
        met = Counter[Entry]()
        judged: dict[str, frozenset[str]] = {}
        for result in results:
            name = self.name(result.path)
            met.update(Entry(name, finding.code, finding.fingerprint) for finding in result.known)
            read = all(finding.code != UNPARSABLE.code for finding in (*result.findings, *result.known))
            if read and not result.failures and result.error is None:
                judged[name] = selected[result.path]
        there = {name: (self.path.parent / name).exists() for name in {entry.file for entry in self.entries}}
        return sum(
            count - min(count, met[entry])
            for entry, count in self.entries.items()
            if not there[entry.file] or entry.code in judged.get(entry.file, ())
        )


def name_in(folder: Path, file: Path) -> str:
    """A file's path relative to a folder, with ``/``; absolute where it lies on another drive."""
    target, start = os.path.realpath(file), os.path.realpath(folder)
    try:
        return Path(os.path.relpath(target, start)).as_posix()
    except ValueError:
        return Path(target).as_posix()


def read_baseline(path: Path) -> Baseline:
    """Raises UsageError for what cannot be read or is no baseline."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UsageError(f"there is no baseline {path}: --write-baseline {path.name} writes one") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UsageError(f"cannot read the baseline {path}: {reason}") from error
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise UsageError(
            f"the baseline {path} is damaged: it is not JSON{where}; delete it and write it again with --write-baseline"
        ) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise UsageError(f"{path} is no baseline that amplint wrote: its format is not {FORMAT}")
    if document.get("version") != VERSION:
        version = document.get("version")
        raise UsageError(f"the baseline {path} has version {version}, and this amplint reads version {VERSION}")
    entries: Counter[Entry] = Counter()
    findings = document.get("findings")
    for number, row in enumerate(findings if isinstance(findings, list) else [None], 1):
        entry = _entry(row)
        if entry is None:
            raise UsageError(
                f"the baseline {path} is damaged at finding {number}; "
                "delete it and write it again with --write-baseline"
            )
        entries[entry] += row["count"]
    return Baseline(path, entries)


def _entry(row: Any) -> Entry | None:
    match row:
        case {"file": str(file), "code": str(code), "fingerprint": str(fingerprint), "count": int(count)} if count > 0:
            return Entry(file, code, fingerprint)
    return None


def baseline_of(path: Path, results: Iterable[FileResult], earlier: Baseline | None) -> Baseline:
    """The baseline of what a run found, with what an earlier one knows of files that are there and were not checked."""
    results = list(results)
    checked = {name_in(path.parent, result.path) for result in results}
    entries: Counter[Entry] = Counter()
    for entry, count in earlier.entries.items() if earlier is not None else ():
        if entry.file not in checked and (path.parent / entry.file).exists():
            entries[entry] = count
    for result in results:
        name = name_in(path.parent, result.path)
        entries.update(Entry(name, finding.code, finding.fingerprint) for finding in result.findings)
    return Baseline(path, entries)


def as_text(baseline: Baseline) -> str:
    """The file's content."""
    rows = [
        json.dumps(
            {"file": entry.file, "code": entry.code, "fingerprint": entry.fingerprint, "count": count},
            ensure_ascii=False,
        )
        for entry, count in sorted(baseline.entries.items())
    ]
    listed = "[\n    " + ",\n    ".join(rows) + "\n  ]" if rows else "[]"
    return f'{{\n  "format": "{FORMAT}",\n  "version": {VERSION},\n  "findings": {listed}\n}}\n'
