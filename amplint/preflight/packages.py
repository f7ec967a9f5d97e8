"""Packages and their exact versions: those installed, and those that requirement and lock files pin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from amplint.config import parse_toml
from amplint.files import display_path
from amplint.frozen import dataclass
from amplint.preflight.problem import Place
from amplint.requirement_files import pyproject_groups, requirement_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amplint.preflight.discovery import InputFile


@dataclass(frozen=True, slots=True)
class Package:
    """A package by its canonical name; ``place`` is where a file pins it, None for an installed one."""

    name: str
    version: Version
    place: Place | None = None


def installed(versions: dict[str, str]) -> list[Package]:
    """The packages of an interpreter; those whose version is of no known form are left out."""
    found = []
    for name, text in sorted(versions.items()):
        version = _version(text)
        if version is not None:
            found.append(Package(name, version))
    return found


def pinned(inputs: Iterable[InputFile]) -> tuple[list[Package], list[str]]:
    """The packages that files pin to one version, and one line for every file that cannot be read."""
    found: list[Package] = []
    errors: list[str] = []
    readers = {"requirements": _requirements, "pyproject": _pyproject, "lock": _lock}
    for file in inputs:
        reader = readers.get(file.kind)
        if reader is None:
            continue
        try:
            found.extend(reader(file, file.path.read_text(encoding="utf-8-sig")))
        except (OSError, ValueError) as error:
            errors.append(f"{display_path(file.path)} was not read: {error}")
    return found, errors


def _requirements(file: InputFile, text: str) -> Iterator[Package]:
    for row, column, requirement in requirement_lines(text):
        yield from _pin(requirement, Place(file.path, row, column))


def _pyproject(file: InputFile, text: str) -> Iterator[Package]:
    for _, requirements in pyproject_groups(parse_toml(text)):
        for requirement in requirements:
            yield from _pin(requirement, _find(file, text, (f'"{requirement}"', f"'{requirement}'"), 1))


def _lock(file: InputFile, text: str) -> Iterator[Package]:
    """Every lock format in TOML lists packages as tables with ``name`` and ``version``."""
    document = parse_toml(text)
    for row in (*_tables(document, "package"), *_tables(document, "packages")):
        name, version = row.get("name"), row.get("version")
        if isinstance(name, str) and isinstance(version, str):
            parsed = _version(version)
            if parsed is not None:
                yield Package(str(canonicalize_name(name)), parsed, _find(file, text, (f'name = "{name}"',), 0))


def _pin(text: str, place: Place) -> Iterator[Package]:
    """The package of a requirement with ``==`` and one full version; markers that exclude this Python are heeded."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return
    if requirement.marker is not None and not requirement.marker.evaluate():
        return
    exact = [part for part in requirement.specifier if part.operator in ("==", "===") and "*" not in part.version]
    version = _version(exact[0].version) if len(exact) == 1 else None
    if version is not None:
        yield Package(str(canonicalize_name(requirement.name)), version, place)


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _tables(document: dict[str, Any], key: str) -> list[dict[str, Any]]:
    value = document.get(key)
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _find(file: InputFile, text: str, needles: tuple[str, ...], skip: int) -> Place:
    """Where one of some strings stands first, ``skip`` characters further on; the file's beginning where none does."""
    for needle in needles:
        position = text.find(needle)
        if position >= 0:
            start = position + skip
            return Place(file.path, text.count("\n", 0, start) + 1, start - (text.rfind("\n", 0, start) + 1) + 1)
    return Place(file.path, 1, 1)
