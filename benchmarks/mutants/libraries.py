"""The libraries whose code is broken, from ``libraries.toml``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from halves import LEARNED, half, project

from amplint.config import parse_toml

FILE = Path(__file__).resolve().with_name("libraries.toml")
RELEASES = Path(__file__).resolve().parent.parent / "ecosystem" / "releases.txt"


@dataclass(frozen=True)
class Library:
    """A release and the package that it installs. ``left_out`` are parts of dotted names that are not imported,
    ``files`` how many of its files are drawn."""

    name: str
    release: str
    package: str
    left_out: tuple[str, ...] = ()
    files: int = 120

    @property
    def half(self) -> str:
        """Learned where the library stands in another list of the project, else by its name."""
        return LEARNED if project(self.name) in _listed() else half(self.name)

    @property
    def requirement(self) -> str:
        return f"{self.name}=={self.release}"


@cache
def _listed() -> frozenset[str]:
    lines = RELEASES.read_text(encoding="utf-8").splitlines()
    return frozenset(project(line.partition("==")[0].strip()) for line in lines)


def libraries() -> dict[str, Library]:
    """Every library by name."""
    tables = parse_toml(FILE.read_text(encoding="utf-8"))
    return {
        name: Library(
            name, table["release"], table["package"], tuple(table.get("left_out", ())), table.get("files", 120)
        )
        for name, table in tables.items()
    }
