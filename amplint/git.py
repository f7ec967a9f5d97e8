"""What git says about files: which of their lines are new or changed since a revision."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from amplint.config import UsageError
from amplint.frozen import dataclass
from amplint.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Rows = tuple[int, int]
"""The first and last of some rows."""

OPTION = "--diff-base"
_OF_THIS_REPOSITORY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
"""What git sets for its hooks; the repository is that of the files."""
_PLAIN = (
    *("-U0", "--inter-hunk-context=0", "-M", "--text", "--no-color", "--no-ext-diff", "--no-textconv"),
    *("--ignore-submodules", "--src-prefix=a/", "--dst-prefix=b/"),
)
"""A diff that no configuration changes, of the changed lines alone."""
_SETTINGS = ("-c", "core.quotePath=true", "-c", "diff.relative=false")


@dataclass(frozen=True, slots=True)
class Change:
    """A file that differs: the rows that are new or changed, none for one that only lost lines or was renamed, and its
    earlier name, None for a new file."""

    rows: tuple[Rows, ...]
    earlier: str | None


NEW = Change(((1, sys.maxsize),), None)


@dataclass(slots=True)
class Repository:
    """A work tree, compared with the commit at which ``revision`` and HEAD part. Raises UsageError."""

    root: Path
    revision: str
    base: str = field(init=False)

    def __post_init__(self) -> None:
        self.base = self._merge_base()

    def changes(self, files: Iterable[Path]) -> dict[Path, Change]:
        """Of these files, by real path, those that differ from the base, committed, staged, untracked or not."""
        names = {file.relative_to(self.root).as_posix(): file for file in files}
        tracked = set(self._lines("ls-files", "-z"))
        untracked = sorted(name for name in names if name not in tracked)
        with self._index_with(untracked) as index:
            found = self._diff(names, index)
        unseen = {name: NEW for name in untracked if name not in found}
        differing = {**found, **unseen}
        return {file: change for name, file in names.items() if (change := differing.get(name)) and change.rows}

    def compared(self, file: Path, data: bytes) -> Change | None:
        """How a file would differ from the base if it held ``data``; None where it would not."""
        name = file.relative_to(self.root).as_posix()
        change = self._diff([name], None).get(name)
        earlier = change.earlier if change is not None else name
        before = self._run("cat-file", "--filters", f"{self.base}:{earlier}", may_fail=True) if earlier else None
        if before is None:
            return NEW
        with tempfile.TemporaryDirectory() as folder:
            for side, content in (("old", before), ("new", data)):
                Path(folder, side).write_bytes(content)
            command = ["git", *_SETTINGS, "diff", "--no-index", *_PLAIN, "old", "new"]
            text = subprocess.run(command, cwd=folder, env=_environment(), capture_output=True, check=False).stdout
        rows = next((one.rows for one in _parsed(text).values()), ())
        return Change(rows, earlier) if rows else None

    def _merge_base(self) -> str:
        commit = None
        if not self.revision.startswith("-"):
            commit = self._run("rev-parse", "--verify", "--quiet", f"{self.revision}^{{commit}}", may_fail=True)
        if commit is None:
            self._run("rev-parse", "--git-dir")
            known = self._lines("for-each-ref", "--format=%(refname:short)%00")
            raise UsageError(
                f"{OPTION}: git knows no revision '{self.revision}' in {self.root}{nearest(self.revision, known)}"
            )
        base = self._run("merge-base", commit.decode().strip(), "HEAD", may_fail=True)
        if base is None:
            raise UsageError(
                f"{OPTION}: '{self.revision}' and HEAD have no common commit in {self.root}; "
                "in a shallow clone, fetch more history first"
            )
        return base.decode().strip()

    def _diff(self, names: Iterable[str], index: Path | None) -> dict[str, Change]:
        """What differs from the base among files that end like these, so that renamed ones are known as such."""
        suffixes = sorted({suffix for name in names if re.fullmatch(r"\.\w+", suffix := Path(name).suffix)})
        others = [f":(literal){name}" for name in names if Path(name).suffix not in suffixes]
        wanted = [*(f":(glob)**/*{suffix}" for suffix in suffixes), *others]
        return _parsed(self._run("diff", *_PLAIN, self.base, "--", *wanted, index=index) or b"") if wanted else {}

    @contextmanager
    def _index_with(self, untracked: Sequence[str]) -> Iterator[Path | None]:
        """A copy of the index that names untracked files too, so that git sees which of them are renamed ones; None
        where there are none, or where that fails, as with an older git."""
        if not untracked:
            yield None
            return
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, "index")
            try:
                shutil.copyfile(self.root / self._lines("rev-parse", "--git-path", "index")[0].rstrip("\n"), copy)
            except OSError:
                yield None
                return
            listed = "\0".join(f":(literal){name}" for name in untracked).encode("utf-8", "surrogateescape")
            adding = ("add", "--intent-to-add", "--force", "--pathspec-from-file=-", "--pathspec-file-nul")
            added = self._run(*adding, index=copy, stdin=listed, may_fail=True)
            yield copy if added is not None else None

    def _lines(self, *arguments: str) -> list[str]:
        """The parts of an answer that NUL ends."""
        answer = (self._run(*arguments) or b"").decode("utf-8", "surrogateescape")
        return [part for part in answer.replace("\0\n", "\0").split("\0") if part]

    def _run(
        self, *arguments: str, index: Path | None = None, stdin: bytes = b"", may_fail: bool = False
    ) -> bytes | None:
        """What git answers; None where it fails and may."""
        environment = _environment()
        if index is not None:
            environment["GIT_INDEX_FILE"] = str(index)
        try:
            done = subprocess.run(
                ["git", *_SETTINGS, *arguments],
                cwd=self.root,
                env=environment,
                input=stdin,
                capture_output=True,
                check=False,
            )
        except FileNotFoundError as error:
            raise UsageError(f"{OPTION} asks git, and there is no git on the PATH") from error
        if done.returncode == 0:
            return done.stdout
        if may_fail:
            return None
        said = done.stderr.decode(errors="replace").strip().split("\n")[0]
        raise UsageError(f"{OPTION}: git {arguments[0]} fails in {self.root}: {said}")


def root_of(path: Path) -> Path | None:
    """The root of the work tree that a real path lies in."""
    return next((folder for folder in (path, *path.parents) if (folder / ".git").exists()), None)


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _OF_THIS_REPOSITORY}
    return {**kept, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}


_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def _parsed(diff: bytes) -> dict[str, Change]:
    """What a diff without context says, by the new name of each file that still exists."""
    changes: dict[str, Change] = {}
    name = earlier = None
    lines = iter(diff.split(b"\n"))
    for line in lines:
        hunk = _HUNK.match(line)
        if hunk is not None:
            removed, first, added = (int(group) if group is not None else 1 for group in hunk.groups())
            if added and name is not None:
                changes[name] = replace(changes[name], rows=(*changes[name].rows, (first, first + added - 1)))
            _skip(lines, removed + added)
            continue
        if line.startswith(b"diff --git "):
            name = earlier = None
        elif line.startswith(b"--- "):
            earlier = _name(line[4:], prefixed=True)
        elif line.startswith(b"rename from "):
            earlier = _name(line[12:])
        elif line.startswith(b"+++ "):
            name = _name(line[4:], prefixed=True)
        elif line.startswith(b"rename to "):
            name = _name(line[10:])
        if name is not None:
            changes.setdefault(name, Change((), earlier))
    return changes


def _skip(lines: Iterator[bytes], count: int) -> None:
    """Pass over the lines of a hunk; the one that says that a file ends without a newline does not count."""
    for line in lines:
        count -= not line.startswith(b"\\")
        if count <= 0:
            return


def _name(written: bytes, *, prefixed: bool = False) -> str | None:
    """A name in a diff; None for no file."""
    text = written.removesuffix(b"\t")
    if text.startswith(b'"'):
        text = ast.literal_eval("b" + text.decode("ascii"))
    if prefixed and text == b"/dev/null":
        return None
    return text[2 if prefixed else 0 :].decode("utf-8", "surrogateescape")
