"""Patterns as in .gitignore: which paths they name, relative to which folder, and what states them."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pathspec import GitIgnoreSpec


GITIGNORE = ".gitignore"


class PatternProblem(ValueError):
    """What is no pattern: one line, without the file that it stands in."""


class Decision(NamedTuple):
    """What a pattern says of a path: to leave it out, or, with ``!``, to take it back."""

    out: bool
    pattern: str


@dataclass(frozen=True, slots=True)
class Patterns:
    """Patterns relative to ``root``. ``stated_in`` is the file or the option that has them."""

    root: Path
    lines: tuple[str, ...]
    stated_in: str

    def decision(self, path: Path, *, folder: bool, below: Path) -> Decision | None:
        """What the last pattern that names an absolute path says of it, None where none does.

        Of a path outside of ``root``, only names say something (``build``, ``*_pb2.py``), and only below ``below``.
        """
        lines, root = (self.lines, self.root) if path.is_relative_to(self.root) else (_names(self.lines), below)
        if not lines or path == root or not path.is_relative_to(root):
            return None
        name = path.relative_to(root).as_posix()
        result = _spec(lines).check_file(f"{name}/" if folder else name)
        if result.include is None or result.index is None:
            return None
        return Decision(result.include, lines[result.index])

    def sparing(self, path: Path) -> Patterns:
        """Without the patterns that leave out a given folder itself, and with it all below."""
        alone = (replace(self, lines=(line,)) for line in self.lines)
        return replace(self, lines=tuple(p.lines[0] for p in alone if not p.leave_out(path, folder=True, below=path)))

    def leave_out(self, path: Path, *, folder: bool, below: Path) -> str | None:
        """The pattern that leaves out an absolute path or a folder above it, if one does."""
        root = self.root if path.is_relative_to(self.root) else below
        above = [parent for parent in path.parents if parent != root and parent.is_relative_to(root)]
        for parent in (*reversed(above), path):
            decision = self.decision(parent, folder=folder or parent != path, below=below)
            if decision is not None and decision.out:
                return decision.pattern
        return None


def patterns(root: Path, lines: Iterable[str], stated_in: str) -> Patterns:
    """Patterns without empty lines and comments. Raises PatternProblem."""
    kept = tuple(line for line in lines if line.strip() and not line.startswith("#"))
    try:
        _spec(kept)
    except ValueError as error:
        raise PatternProblem(f"{error}; patterns are as in .gitignore") from error
    return Patterns(root, kept, stated_in)


def gitignore(folder: Path) -> Patterns | None:
    """What the .gitignore of a folder says, without what git cannot read either; None where there is none."""
    path = folder / GITIGNORE
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    lines = text.splitlines()
    try:
        return patterns(folder, lines, str(path))
    except PatternProblem:
        return Patterns(folder, tuple(line for line in lines if _is_pattern(line)), str(path))


def _is_pattern(line: str) -> bool:
    try:
        return bool(patterns(Path(), (line,), "").lines)
    except PatternProblem:
        return False


@lru_cache(maxsize=1024)
def _spec(lines: tuple[str, ...]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(lines)


@lru_cache(maxsize=1024)
def _names(lines: tuple[str, ...]) -> tuple[str, ...]:
    """The patterns that are not tied to a folder."""
    return tuple(line for line in lines if "/" not in line.strip().lstrip("!").removeprefix("**/").rstrip("/"))
