"""Applying rewrites: no overlap, parse again, check again, repeat until nothing changes, write in one step."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from amplint.files import display_path
from amplint.finding import Applicability, Edit, Finding
from amplint.source import Source, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from amplint.engine import FileResult

MAX_PASSES = 10
"""Fixes that are still offered after this many passes are taken to undo each other."""


class FixError(Exception):
    """A fixed file could not be written; the original stands."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A source after fixing: what is still found in it, how many findings were fixed, and the rules' mistakes."""

    source: Source
    result: FileResult
    fixed: int
    problems: tuple[str, ...]


def allowed(finding: Finding, highest: Applicability) -> bool:
    """Whether a finding's fix may be applied: safe fixes always, unsafe ones only if asked for, shown ones never."""
    if finding.fix is None or not finding.fix.edits:
        return False
    return finding.fix.applicability is Applicability.SAFE or (
        highest is Applicability.UNSAFE and finding.fix.applicability is Applicability.UNSAFE
    )


def fix_source(
    source: Source, result: FileResult, highest: Applicability, check: Callable[[Source], FileResult]
) -> Outcome:
    """Apply the fixes of ``result`` pass by pass, checking again after each.

    A fix that breaks parsing, or that leaves its finding in place, is taken back and named in ``problems``; its rule
    then fixes nothing more in this file.
    """
    problems: list[str] = []
    barred: set[str] = set()
    fixed = 0
    for _ in range(MAX_PASSES):
        wanted = [f for f in result.findings if f.code not in barred and allowed(f, highest)]
        chosen = without_overlaps(wanted, source)
        if not chosen:
            return Outcome(source, result, fixed, tuple(problems))
        changed = _parsed(source, chosen)
        if changed is None:
            breaking = _breaking(source, chosen)
            barred |= breaking
            problems += [f"internal error in {code}: its fix breaks {source.path}; not applied" for code in breaking]
            continue
        after = check(changed)
        useless = _useless(chosen, (source, result), (changed, after))
        if useless:
            barred |= useless
            problems += [
                f"internal error in {code}: its fix of {source.path} cures nothing; undone" for code in useless
            ]
            continue
        source, result, fixed = changed, after, fixed + len(chosen)
    codes = ", ".join(sorted({f.code for f in result.findings if allowed(f, highest)} - barred))
    if codes:
        problems.append(
            f"fixes of {codes} in {source.path} did not settle in {MAX_PASSES} passes; run again or ignore one"
        )
    return Outcome(source, result, fixed, tuple(problems))


def without_overlaps(findings: Iterable[Finding], source: Source) -> list[Finding]:
    """The findings whose fixes can be applied together, first by position; the others wait for the next pass.

    Of two fixes of one place the unsafe one goes first: it changes what the code means, the safe one only how it is
    spelled. The same insertion wanted by two fixes (an import) is no conflict and is made once.
    """
    chosen: list[Finding] = []
    taken: set[tuple[int, int, str]] = set()
    for finding in sorted(findings, key=_precedence):
        assert finding.fix is not None
        edits = {_range(edit, source) for edit in finding.fix.edits}
        if any(_clash(edit, other) for edit in edits for other in taken - edits):
            continue
        chosen.append(finding)
        taken |= edits
    return chosen


def _precedence(finding: Finding) -> tuple[bool, object]:
    return (finding.fix is not None and finding.fix.applicability is Applicability.SAFE, finding.sort_key)


def _range(edit: Edit, source: Source) -> tuple[int, int, str]:
    return source.offset(edit.span.start), source.offset(edit.span.end), edit.content


def _clash(a: tuple[int, int, str], b: tuple[int, int, str]) -> bool:
    """Whether two edits touch: at a shared border the order of the texts would be arbitrary."""
    return a[0] <= b[1] and b[0] <= a[1]


def apply_edits(source: Source, edits: Iterable[Edit]) -> Source:
    """The source with edits applied, in its own encoding and newline style; identical edits are applied once.

    Raises UnicodeEncodeError where the encoding cannot hold the new text.
    """
    text = source.text
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    pieces, position = [], 0
    for start, end, content in sorted(dict.fromkeys(_range(edit, source) for edit in edits), key=lambda r: r[:2]):
        pieces += [text[position:start], content.replace("\r\n", "\n").replace("\n", newline)]
        position = max(position, end)
    pieces.append(text[position:])
    return Source(source.path, "".join(pieces).encode(source.encoding))


def _parsed(source: Source, findings: Sequence[Finding]) -> Source | None:
    """The source with all these fixes, or None where it then no longer parses."""
    edits = [edit for finding in findings if finding.fix is not None for edit in finding.fix.edits]
    try:
        changed = apply_edits(source, edits)
        changed.tree  # noqa: B018
    except (SourceError, UnicodeEncodeError):
        return None
    return changed


def _breaking(source: Source, findings: Sequence[Finding]) -> set[str]:
    """The codes whose fixes, added one at a time, break the source."""
    accepted: list[Finding] = []
    breaking = set()
    for finding in findings:
        if _parsed(source, [*accepted, finding]) is None:
            breaking.add(finding.code)
        else:
            accepted.append(finding)
    return breaking


def _useless(
    chosen: Sequence[Finding], before: tuple[Source, FileResult], after: tuple[Source, FileResult]
) -> set[str]:
    """The codes of which, after their fixes, there are no fewer findings and one is still where it was."""
    count_before, count_after = (Counter(f.code for f in result.findings) for _, result in (before, after))
    stubborn = {code for code in {f.code for f in chosen} if count_after[code] >= count_before[code]}
    if not stubborn:
        return stubborn
    source, changed = before[0], after[0]
    edits = {_range(edit, source) for finding in chosen if finding.fix for edit in finding.fix.edits}
    still = {(f.code, changed.offset(f.span.start)) for f in after[1].findings}
    return {
        f.code for f in chosen if f.code in stubborn and (f.code, _moved(source.offset(f.span.start), edits)) in still
    }


def _moved(offset: int, edits: Iterable[tuple[int, int, str]]) -> int:
    """Where an offset lies after edits."""
    return offset + sum(len(text) - (end - start) for start, end, text in edits if end <= offset and start < offset)


def write_atomically(path: Path, before: bytes, after: bytes) -> None:
    """Replace a file's content in one step, keeping its mode; a link's target is written, not the link.

    Raises FixError where that fails or where the file no longer holds ``before``.
    """
    target = Path(os.path.realpath(path))
    temporary = None
    try:
        if target.read_bytes() != before:
            raise FixError(f"{path} changed while it was being fixed; left alone")
        mode = target.stat().st_mode
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(after)
        os.chmod(temporary, mode)
        os.replace(temporary, target)
        temporary = None
    except OSError as error:
        raise FixError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            os.unlink(temporary)


def unified_diff(path: Path, before: bytes, after: bytes) -> str:
    """The change as a unified diff with ``a/`` and ``b/`` names relative to the current folder."""
    from difflib import unified_diff as diff_lines

    name = display_path(path)
    lines = diff_lines(
        Source(path, before).lines, Source(path, after).lines, fromfile=f"a/{name}", tofile=f"b/{name}", lineterm="\n"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
