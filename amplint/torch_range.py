"""Which releases of torch a file is for: those that its project requires, where the user names none.

From the file's folder upwards, up to the root of a checkout (a folder with ``.git``), the first folder decides in
which a file says what is required of torch: pyproject.toml (standard tables, then Poetry's), setup.cfg or setup.py,
before requirements files, before a conda environment. For a package that is installed, or lies unpacked, its own
metadata decides: that of the distribution beside it which lists it, whatever a project that was copied into it says.
Where no release of torch itself is required, a pinned torchvision or torchaudio says which one it is. In
pyproject.toml, setup.cfg and metadata the project's own dependencies count before extras and groups;
``requirements.txt`` counts before its likes. Where several requirements count alike, such as markers for several
Pythons, all of what they allow is supported.

Of the releases allowed

* the **newest** decides what is reported: cast policies, results and deprecations are judged by it;
* the **oldest** decides what a fix may write: never a name or an argument that it lacks;
* a failure of an older release alone is reported as well, since the project promises to run there, and its message
  names the release and the file that allows it.

A requirement without a lower bound promises no old release: it stands for the newest release that it allows, and one
without any bound for the newest release that is known. Nor is a release promised that has no wheel for the oldest
Python that the project, as the same folder or metadata states it, runs on (``python_support.json``).
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from amplint import contents, requirement_files
from amplint.config import NEWEST_TORCH, parse_toml
from amplint.data import read_table
from amplint.distributions import distribution_of, distributions_in
from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from packaging.requirements import Requirement

Release = tuple[int, int]

_LAST_OF_1 = 13
_RELEASES = (*((1, n) for n in range(_LAST_OF_1 + 1)), *((2, n) for n in range(NEWEST_TORCH[1] + 1)))
_PATCHES = range(4)
_PYTHON_PATCHES = range(20)
_NAMES = ("torch",)
_CONDA_NAMES = ("torch", "pytorch", "pytorch-gpu", "pytorch-cpu")
_FIRST_VISION, _VISION_OF_2, _FIRST_AUDIO = 8, 15, 7
"""The minor releases of torchvision for torch 1.7 and 2.0, and of torchaudio for 1.7."""
_MINOR = re.compile(r"(\d+)\.(\d+)")
_LOWER_BOUNDS = (">=", ">", "==", "===", "~=")
_LARGEST = 1_000_000


@dataclass(frozen=True, slots=True)
class TorchRange:
    """The oldest and the newest release (major, minor) that a file has to run with, and the file that says so.

    ``bounded``: that states the oldest, which else is the newest.
    """

    oldest: Release
    newest: Release
    stated_in: Path | None = None
    bounded: bool = False

    def before(self, changes: Iterable[Release]) -> list[Release]:
        """The releases to judge besides the newest, newest first: of those allowed, the last before each change."""
        last = {max(r for r in _RELEASES if r < change) for change in changes if self.oldest < change <= self.newest}
        return sorted(last, reverse=True)


def torch_range(folder: Path) -> TorchRange:
    """What the project that a folder belongs to requires; the newest release known where nothing is said."""
    return _required(str(folder), contents.age()) or TorchRange(NEWEST_TORCH, NEWEST_TORCH)


@lru_cache(maxsize=4096)
def _required(folder: str, age: int) -> TorchRange | None:
    released = distribution_of(folder, age)
    if released is not None:
        stated = _read(released, _in_metadata)
        if stated is not None:
            return _installable(stated, [(released, requirement_files.python_of_metadata)])
    try:
        names = os.listdir(folder)
    except OSError:
        names = []
    found = _installable(_stated(Path(folder), sorted(names)), _pythons(Path(folder), names))
    parent, own = os.path.split(folder)
    if found is not None or ".git" in names or parent == folder or own in distributions_in(parent, age):
        return found
    return _required(parent, age)


def _stated(folder: Path, names: list[str]) -> TorchRange | None:
    """What the files of one folder say, the weightiest first."""
    present = set(names)
    readers: list[tuple[str, Callable[[Path], Iterable[Requirement]]]] = [
        ("pyproject.toml", _in_pyproject),
        ("setup.cfg", _in_setup_cfg),
        ("setup.py", _in_setup_py),
    ]
    for name, reader in readers:
        found = _read(folder / name, reader) if name in present else None
        if found is not None:
            return found
    lists = [n for n in names if n.startswith("requirement") and n.endswith((".txt", ".in")) and n != _USUAL_LIST]
    environments = [n for n in names if n.startswith("environment") and n.endswith((".yml", ".yaml"))]
    for group, reader in (
        ([_USUAL_LIST] if _USUAL_LIST in present else [], _in_requirements),
        (lists, _in_requirements),
        (environments, _in_environment),
    ):
        stated = [found for name in group if (found := _read(folder / name, reader)) is not None]
        if stated:
            return replace(_union(stated), stated_in=stated[0].stated_in)
    return None


def _union(ranges: list[TorchRange]) -> TorchRange:
    """A range with all that some allow."""
    oldest, newest = min(one.oldest for one in ranges), max(one.newest for one in ranges)
    return TorchRange(oldest, newest, bounded=any(one.bounded for one in ranges))


_USUAL_LIST = "requirements.txt"


def _pythons(folder: Path, names: list[str]) -> list[tuple[Path, Callable[[str], str | None]]]:
    """The files of a folder that may state a project's Pythons, the weightiest first, each with its reader."""
    readers: dict[str, Callable[[str], str | None]] = {
        "pyproject.toml": lambda text: requirement_files.python_of_pyproject(parse_toml(text)),
        "setup.cfg": requirement_files.python_of_setup_cfg,
        "setup.py": requirement_files.python_of_setup_py,
    }
    return [(folder / name, reader) for name, reader in readers.items() if name in names]


def _installable(
    found: TorchRange | None, pythons: list[tuple[Path, Callable[[str], str | None]]]
) -> TorchRange | None:
    """A range without the older releases that the oldest Python allowed cannot install."""
    if found is None or found.oldest == found.newest:
        return found
    for path, reader in pythons:
        try:
            first = _first_for(reader(path.read_text(encoding="utf-8-sig")) or "")
        except (OSError, ValueError, RecursionError):
            continue
        if first is not None:
            return replace(found, oldest=min(max(found.oldest, first), found.newest))
    return found


@cache
def _first_for(pythons: str) -> Release | None:
    """The first release of torch for the oldest of some Pythons, stated as PEP 440 has it; None where that is unknown.

    Raises ValueError.
    """
    from packaging.specifiers import SpecifierSet

    if not pythons.strip():
        return None
    allowed = SpecifierSet(pythons)
    for python, release in read_table("python_support.json")["first"].items():
        if any(allowed.contains(f"{python}.{patch}") for patch in _PYTHON_PATCHES):
            major, minor = release.split(".")
            return int(major), int(minor)
    return None


def _read(path: Path, reader: Callable[[Path], Iterable[Requirement]]) -> TorchRange | None:
    """What one file says; a file that cannot be read says nothing."""
    try:
        ranges = [found for requirement in reader(path) if (found := _allowed(requirement)) is not None]
    except (OSError, ValueError, RecursionError):
        return None
    return replace(_union(ranges), stated_in=path) if ranges else None


def _text(path: Path) -> str:
    """A file that mentions torch, else nothing. Raises OSError, ValueError."""
    if path.stat().st_size > _LARGEST:
        return ""
    data = path.read_bytes()
    return data.decode("utf-8-sig") if b"torch" in data else ""


def _in_pyproject(path: Path) -> list[Requirement]:
    text = _text(path)
    if not text:
        return []
    document = parse_toml(text)
    return _own_first(requirement_files.pyproject_groups(document)) or _own_first(
        requirement_files.poetry_groups(document)
    )


def _in_setup_cfg(path: Path) -> list[Requirement]:
    text = _text(path)
    return _own_first(requirement_files.setup_cfg_groups(text)) if text else []


def _in_setup_py(path: Path) -> list[Requirement]:
    text = _text(path)
    return _of_torch(requirement_files.setup_py_requirements(text)) if text else []


def _in_metadata(path: Path) -> list[Requirement]:
    return _own_first(requirement_files.metadata_groups(_text(path)))


def _in_requirements(path: Path) -> list[Requirement]:
    found: list[Requirement] = []
    files = [path]
    seen: set[Path] = set()
    while files:
        current = files.pop()
        if current in seen or len(seen) > 20:
            continue
        seen.add(current)
        text = current.read_text(encoding="utf-8-sig") if current.is_file() else ""
        found += _of_torch(requirement for _, _, requirement in requirement_files.requirement_lines(text))
        files += [current.parent / name for name in requirement_files.included_files(text)]
    return found


def _in_environment(path: Path) -> list[Requirement]:
    text = _text(path)
    return _of_torch(requirement_files.conda_requirements(text), _CONDA_NAMES) if text else []


def _own_first(groups: Iterable[tuple[str, list[str]]]) -> list[Requirement]:
    """The requirements on torch of the project itself, else those of its extras and groups."""
    read = [(name, _of_torch(texts)) for name, texts in groups]
    own = [requirement for name, found in read if not name for requirement in found]
    return own or [requirement for _, found in read for requirement in found]


def _of_torch(texts: Iterable[str], names: tuple[str, ...] = _NAMES) -> list[Requirement]:
    """What is required of torch; where no release is, what a companion of one stands for."""
    own, implied = [], []
    for text in texts:
        if "torch" not in text:
            continue
        from packaging.requirements import InvalidRequirement, Requirement

        try:
            requirement = Requirement(_named(text))
        except InvalidRequirement:
            continue
        if requirement.name.lower() in names:
            own.append(requirement)
        elif (release := _companions_release(requirement)) is not None:
            implied.append(Requirement(f"torch=={release[0]}.{release[1]}.*"))
    bounded = any(requirement.specifier for requirement in own)
    return implied if implied and not bounded else own


def _companions_release(requirement: Requirement) -> Release | None:
    """The release of torch that a pinned torchvision or torchaudio is built for and asks for, as their own metadata
    say: torchvision 0.8 to 0.14 for 1.7 to 1.13, 0.15 and on for 2.0 and on; torchaudio 0.7 to 0.13, then as torch."""
    pins = [one.version for one in requirement.specifier if one.operator in ("==", "===")]
    found = _MINOR.match(pins[0]) if pins else None
    if found is None:
        return None
    major, minor = int(found[1]), int(found[2])
    name = requirement.name.lower()
    if name == "torchvision" and major == 0 and minor >= _FIRST_VISION:
        return (2, minor - _VISION_OF_2) if minor >= _VISION_OF_2 else (1, minor - 1)
    if name == "torchaudio" and (major == 2 or (major == 0 and _FIRST_AUDIO <= minor <= _LAST_OF_1)):
        return (2, minor) if major else (1, minor)
    return None


def _named(text: str) -> str:
    """A requirement, which for the address of a wheel is the release in its name."""
    address = text.rpartition("@")[2] if "://" in text else ""
    if not address:
        return text
    name, _, rest = unquote(address).rpartition("/")[2].partition("-")
    version = rest.partition("-")[0].partition("+")[0]
    return f"{name}=={version}" if rest.partition("#")[0].endswith(".whl") else name


def _allowed(requirement: Requirement) -> TorchRange | None:
    """The releases that a requirement supports; None where it allows none known."""
    from packaging.specifiers import SpecifierSet
    from packaging.version import InvalidVersion, Version

    specifiers = [specifier for specifier in requirement.specifier if specifier.operator != "!="]
    if not specifiers:
        return TorchRange(NEWEST_TORCH, NEWEST_TORCH)
    for specifier in specifiers:
        if specifier.operator in ("==", "===") and "*" not in specifier.version:
            try:
                exact = Version(specifier.version).release
            except InvalidVersion:
                return None
            release = min((exact[0], exact[1] if len(exact) > 1 else 0), NEWEST_TORCH)
            return TorchRange(release, release, bounded=True)
    allowed = SpecifierSet(",".join(map(str, requirement.specifier)))
    matching = [
        release
        for release in _RELEASES
        if any(allowed.contains(f"{release[0]}.{release[1]}.{patch}", prereleases=True) for patch in _PATCHES)
    ]
    if not matching:
        future = any(allowed.contains(f"{NEWEST_TORCH[0]}.{NEWEST_TORCH[1] + n}.0") for n in range(1, 20))
        return TorchRange(NEWEST_TORCH, NEWEST_TORCH, bounded=True) if future else None
    bounded = any(specifier.operator in _LOWER_BOUNDS for specifier in specifiers)
    return TorchRange(matching[0] if bounded else matching[-1], matching[-1], bounded=bounded)
