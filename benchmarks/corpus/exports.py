"""Checkouts of old commits: the Python files of a repository at a commit and what says which torch they are for, taken
from a clone without touching it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from corpus.rows import Place

REGULAR_FILES = (b"100644", b"100755")
WANTED = ("*.py", "pyproject.toml", "setup.cfg", "requirements*.txt", "requirements/*.txt", "environment*.y*ml")
"""Files of a repository: those with a slash below any folder of that name."""
LAYOUT = "2"
"""Goes up when more kinds of files are exported: older exports then are made again."""


class ExportError(Exception):
    """A file cannot be had: no clone, no such commit, or no such path in it."""


class Exports:
    """Exports below ``cache`` of repositories whose clones lie below ``clones``.

    All Python files of a commit are written, not only the one asked for: the inference follows imports within a
    project; and the files that state requirements, since it judges by the torch that they ask for. What was exported
    once is used again.
    """

    def __init__(self, clones: Path, cache: Path) -> None:
        self._clones = clones
        self._cache = cache

    def file(self, place: Place) -> Path:
        """The exported file. Raises ExportError."""
        folder = self._cache / place.repository.replace("/", "+") / f"{place.commit}-{LAYOUT}"
        if not folder.is_dir():
            self._export(place, folder)
        file = folder / place.path
        if not file.is_file():
            raise ExportError(f"{place.repository} has no {place.path} at {place.commit[:10]}")
        return file

    def alone(self, place: Place) -> Path:
        """The exported file in a folder that holds nothing else. Raises ExportError."""
        file = self.file(place)
        folder = self._cache / "alone" / place.repository.replace("/", "+") / place.commit
        copy = (folder / place.path.replace("/", "+")).with_suffix("") / file.name
        if not copy.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
        return copy

    def _export(self, place: Place, folder: Path) -> None:
        git = self._git_folder(place)
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=folder.parent))
        try:
            names = list(_wanted_files(git, place.commit))
            for name, content in zip(names, _contents(git, place.commit, names), strict=True):
                if content is not None:
                    target = unfinished / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(content)
            unfinished.rename(folder)
        except OSError:
            shutil.rmtree(unfinished, ignore_errors=True)
            if not folder.is_dir():
                raise

    def _git_folder(self, place: Place) -> Path:
        owner, name = place.repository.split("/")
        joined = (place.repository, f"{owner}+{name}", f"{owner}-{name}", f"{owner}_{name}", name)
        for candidate in (self._clones / (stem + end) for stem in joined for end in ("", ".git", "/repo", "/repo.git")):
            for git in (candidate / ".git", candidate):
                is_git = git.is_file() if git.name == ".git" and not git.is_dir() else (git / "objects").is_dir()
                if is_git and _git(git, "cat-file", "-e", f"{place.commit}^{{commit}}").returncode == 0:
                    return git
        raise ExportError(f"no clone of {place.repository} with {place.commit[:10]} below {self._clones}")


def _git(folder: Path, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run git on a clone. Nothing is fetched where the clone is a partial one."""
    return subprocess.run(
        ["git", f"--git-dir={folder}", *arguments],
        input=stdin,
        capture_output=True,
        check=False,
        env={**os.environ, "GIT_NO_LAZY_FETCH": "1"},
    )


def _wanted_files(git: Path, commit: str) -> Iterator[str]:
    for entry in _git(git, "ls-tree", "-r", "-z", commit).stdout.split(b"\0"):
        if entry:
            description, name = entry.split(b"\t", 1)
            path = os.fsdecode(name)
            if description.split()[0] in REGULAR_FILES and any(PurePath(path).match(pattern) for pattern in WANTED):
                yield path


def _contents(git: Path, commit: str, names: Sequence[str]) -> Iterator[bytes | None]:
    """The content of each file, None where the clone lacks it."""
    asked = b"".join(os.fsencode(f"{commit}:{name}\n") for name in names if "\n" not in name)
    output = _git(git, "cat-file", "--batch", stdin=asked).stdout
    position = 0
    for name in names:
        if "\n" in name:
            yield None
            continue
        end = output.index(b"\n", position)
        header = output[position:end]
        position = end + 1
        if header.endswith(b" missing"):
            yield None
            continue
        size = int(header.rsplit(b" ", 1)[1])
        yield output[position : position + size]
        position += size + 1
