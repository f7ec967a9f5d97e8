"""Do findings and fixes depend on which files are checked, in which order, by how many processes, from which folder, or
on what is kept of earlier runs?

    python benchmarks/independence.py [--cache FOLDER] [--sources FOLDER]... [--list FILE] [--package NAME]...
                                      [--pedantic] [--figures]

Each release is checked whole, by one process and without a cache, and then in other ways; the JSON findings, with their
messages and fixes, must be the same ones, field by field. What ``--diff --unsafe-fixes``, which never asks the cache,
makes of each file must be the same text in another order by two processes. The releases are pinned and had as those of
``benchmarks/ecosystem``; nothing of them is installed or run.
``--pedantic`` also compares what is merely possible. ``--figures`` keeps the figures for ``docs/figures.md``.

Leaves with status 1 where anything differs, 2 where a release could not be had or amplint failed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecosystem.releases import LIST, Shelf, listed
from figures import results
from wheels import DownloadError

from amplint.files import find_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Finding = dict[str, Any]
Answer = tuple[list[Path], list[Finding]]
"""The files that were checked and what was found in them."""

PACKAGES = (
    *("accelerate", "bitsandbytes", "denoising-diffusion-pytorch", "einops", "flash-linear-attention"),
    *("open_clip_torch", "segmentation-models-pytorch", "torchtune", "vector-quantize-pytorch", "x-transformers"),
)
ABOUT = (
    "The findings of ten releases, what is merely possible too, in other ways of calling `check` beside those of the "
    "whole release by one process without a cache: how many of the findings compared are the same, field by field. "
    "Fixes: of how many files `--diff --unsafe-fixes` says the same in another order by two processes."
)
COMMAND = "python benchmarks/independence.py --pedantic --figures"


class CheckError(Exception):
    """``amplint check`` did not do its work."""


@dataclass(frozen=True, slots=True)
class Release:
    """The folder of a release, its files, and what is found in it, by one process."""

    folder: Path
    files: list[Path]
    found: list[Finding]
    options: tuple[str, ...]

    def check(
        self, *paths: Path | str, jobs: int = 1, here: Path | None = None, cache: Path | None = None
    ) -> list[Finding]:
        """The findings of one command. Raises CheckError."""
        return check(*paths, *self.options, f"--jobs={jobs}", here=here, cache=cache)

    def diffs(self, *paths: Path | str, jobs: int = 1) -> dict[str, str]:
        """What all fixes make of each file that they change. Raises CheckError."""
        options = ("--diff", "--unsafe-fixes", f"--jobs={jobs}", *self.options)
        shown = amplint(*paths, *options, here=self.folder)
        parts = re.split(r"^--- a/(.*)\n", shown, flags=re.MULTILINE)
        return dict(zip(parts[1::2], parts[2::2], strict=True))

    @property
    def half(self) -> list[Path]:
        """Half of the files, drawn at random."""
        return random.Random(0).sample(self.files, len(self.files) // 2)

    @property
    def concerned(self) -> list[Path]:
        """The files with findings, and as many others, drawn at random."""
        told = {Path(finding["filename"]) for finding in self.found}
        others = [path for path in self.files if path not in told]
        return sorted(told) + random.Random(0).sample(others, min(len(told), len(others)))


def check(*arguments: Path | str, here: Path | None = None, cache: Path | None = None) -> list[Finding]:
    """The findings of ``amplint check`` as JSON. Raises CheckError."""
    findings: list[Finding] = json.loads(amplint(*arguments, "--output-format=json", here=here, cache=cache))
    return findings


def amplint(*arguments: Path | str, here: Path | None = None, cache: Path | None = None) -> str:
    """The output of ``amplint check``, with results kept in a folder or not at all. Raises CheckError."""
    command = [sys.executable, "-m", "amplint", "check", "--exit-zero"]
    command += [f"--cache-dir={cache}" if cache else "--no-cache", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=here)
    if done.returncode != 0:
        raise CheckError(f"amplint check left with status {done.returncode}:\n{done.stderr.strip()}")
    return done.stdout


def two_processes(release: Release) -> Answer:
    """By two processes, where there is enough source for them."""
    return release.files, release.check(release.folder, jobs=2)


def backwards(release: Release) -> Answer:
    """The files named one by one, the last first, by relative paths in a folder whose configuration ignores all."""
    with tempfile.TemporaryDirectory(prefix="elsewhere-") as name:
        Path(name, "amplint.toml").write_text('ignore = ["AMP"]\n', encoding="utf-8")
        here = Path(os.path.realpath(name))
        return release.files, release.check(*(os.path.relpath(p, here) for p in release.files[::-1]), here=here)


def halves(release: Release) -> Answer:
    """Half of the files, drawn at random, and in another command the rest."""
    rest = sorted({*release.files} - {*release.half})
    return release.files, [finding for half in (release.half, rest) if half for finding in release.check(*half)]


def alone(release: Release) -> Answer:
    """A command for each file that has findings, and for as many others."""
    return release.concerned, [finding for path in release.concerned for finding in release.check(path)]


def subfolder(release: Release) -> Answer:
    """Only the folder with the most findings of those that do not have all."""
    told = [folder for finding in release.found for folder in Path(finding["filename"]).parents]
    counted = {folder: count for folder, count in Counter(told).items() if count < len(release.found)}
    if not counted:
        return [], []
    most = max(sorted(counted), key=counted.__getitem__)
    return [path for path in release.files if most in path.parents], release.check(most)


def half_kept(release: Release) -> Answer:
    """Half of the files first, and then all, with a cache."""
    with tempfile.TemporaryDirectory(prefix="kept-") as name:
        if release.half:
            release.check(*release.half, cache=Path(name))
        return release.files, release.check(release.folder, cache=Path(name))


def all_kept(release: Release) -> Answer:
    """All twice, with a cache."""
    with tempfile.TemporaryDirectory(prefix="kept-") as name:
        release.check(release.folder, jobs=2, cache=Path(name))
        return release.files, release.check(release.folder, cache=Path(name))


WAYS: dict[str, Callable[[Release], Answer]] = {
    "two processes": two_processes,
    "backwards, from elsewhere": backwards,
    "random halves": halves,
    "file by file": alone,
    "a subfolder": subfolder,
    "half kept": half_kept,
    "all kept": all_kept,
}
FIXES = "fixes"


@dataclass(frozen=True, slots=True)
class Compared:
    """How many of the findings on either side are the same, and a line for each that is not."""

    same: int
    different: list[str]

    @property
    def all(self) -> int:
        return self.same + len(self.different)


def compared(release: Release, answer: Answer) -> Compared:
    """What a way found, beside what the whole release has in the files that it checked."""
    files, found = set(map(str, answer[0])), answer[1]
    whole = {_key(finding): finding for finding in release.found if finding["filename"] in files}
    other = {_key(finding): finding for finding in found}
    keys = sorted(whole.keys() | other.keys())
    different = [
        f"{os.path.relpath(key[0], release.folder)}:{key[1]}:{key[2]} {key[3]} {text}"
        for key in keys
        if (text := _difference(whole.get(key), other.get(key)))
    ]
    return Compared(len(keys) - len(different), different)


def fixes_compared(release: Release) -> Compared:
    """What fixes make of the files of the release, and in another order by two processes."""
    whole, other = release.diffs(release.folder), release.diffs(*release.files[::-1], jobs=2)
    files = whole.keys() | other.keys()
    different = [f"{file}: its diff is another one" for file in sorted(files) if whole.get(file) != other.get(file)]
    return Compared(len(files) - len(different), different)


def _key(finding: Finding) -> tuple[str, int, int, str, int, int]:
    """One code is told once of an expression."""
    start, end = finding["location"], finding["end_location"]
    return finding["filename"], start["row"], start["column"], finding["code"], end["row"], end["column"]


def _difference(whole: Finding | None, other: Finding | None) -> str:
    """In words; nothing where both are the same, field by field."""
    if whole is None or other is None:
        return f"only {'this way' if other else 'in the whole'}: {(whole or other or {}).get('message')}"
    fields = [name for name in whole.keys() | other.keys() if whole.get(name) != other.get(name)]
    return "; ".join(f"{name}: {whole.get(name)} is {other.get(name)}" for name in sorted(fields))


def lines(rows: dict[str, dict[str, Compared]]) -> Iterator[str]:
    """The table, and each difference."""
    width = max(map(len, rows), default=0)
    yield " " * width + "".join(f"  {way}" for way in (*WAYS, FIXES))
    for name, row in rows.items():
        yield (f"{name:{width}}" + "".join(f"  {_cell(one):{len(way)}}" for way, one in row.items())).rstrip()
    for name, row in rows.items():
        yield from (f"{name}, {way}: {line}" for way, one in row.items() for line in one.different)


def _cell(one: Compared) -> str:
    return f"{len(one.different)} of {one.all} differ" if one.different else f"{one.same} equal" if one.same else "none"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and say the exit status."""
    parser = argparse.ArgumentParser(prog="independence", description="Findings and fixes in several ways of calling.")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "amplint-ecosystem"
    parser.add_argument("--cache", type=Path, default=cache, metavar="FOLDER", help=f"(default: {cache})")
    parser.add_argument("--sources", type=Path, action="append", default=[], metavar="FOLDER")
    parser.add_argument("--list", type=Path, default=LIST, metavar="FILE", help="of name==version lines")
    parser.add_argument("--package", action="append", metavar="NAME", help="of the list (default: ten of them)")
    parser.add_argument("--pedantic", action="store_true", help="also what is merely possible")
    parser.add_argument("--figures", action="store_true", help="keep the figures for docs/figures.md")
    chosen = parser.parse_args(arguments)
    if chosen.figures and (chosen.package or not chosen.pedantic):
        parser.error("--figures are those of all packages, with --pedantic")
    shelf = Shelf(chosen.cache.resolve(), [folder.resolve() for folder in chosen.sources])
    rows: dict[str, dict[str, Compared]] = {}
    try:
        for pinned in listed(chosen.list):
            if pinned.package not in (chosen.package or PACKAGES):
                continue
            folder = shelf.folder(pinned)
            files = [file.path for file in find_files([str(folder)]).files]
            options = ("--pedantic",) if chosen.pedantic else ()
            release = Release(folder, files, check(folder, *options, "--jobs=1"), options)
            rows[str(pinned)] = {name: compared(release, way(release)) for name, way in WAYS.items()}
            rows[str(pinned)][FIXES] = fixes_compared(release)
            differing = sum(len(one.different) for one in rows[str(pinned)].values())
            print(f"{pinned}: {len(release.found)} findings in {len(files)} files, {differing} differ", file=sys.stderr)
    except (DownloadError, CheckError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    if not rows:
        print(f"{chosen.list} lists none of these packages", file=sys.stderr)
        return 2
    print("\n".join(lines(rows)))
    if chosen.figures:
        shares = {name: {way: (one.same, one.all) for way, one in row.items()} for name, row in rows.items()}
        results.save("independence", COMMAND, about=ABOUT, seen={"findings": shares})
    return 1 if any(one.different for row in rows.values() for one in row.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
