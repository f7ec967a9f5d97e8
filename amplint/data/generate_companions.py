"""Generates ``companions.json``: what torchvision and torchaudio once held and later do not, release by release.

Usage: ``python -m amplint.data.generate_companions WHEEL... [--out OUT]``, with wheels of several releases of each
(seconds; nothing is installed or run: the modules are read).

``gone`` holds by the first release of torch whose companion lacks them, and by module, names that the module bound in
an earlier release that was read: functions, classes, variables and submodules. A release of a companion is for the
torch that it pins, or, where it pins none, of its own number. A module that answers for names that it does not spell
(``__getattr__``) holds all.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import zipfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from amplint.data.generate_names import release_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amplint.data.generate_names import Release

COMPANIONS = ("torchaudio", "torchvision")
_PINNED = re.compile(r"^Requires-Dist: torch ?\(?==([\d.]+)", re.MULTILINE)
_VERSION = re.compile(r"^Version: ([\d.]+)", re.MULTILINE)


class Wheel(NamedTuple):
    """One release of a companion: the torch that it is for, and its modules by name."""

    companion: str
    torch: Release
    modules: dict[str, ast.Module]


def read(path: Path) -> Wheel:
    """What a wheel holds."""
    modules = {}
    with zipfile.ZipFile(path) as archive:
        entries = archive.namelist()
        metadata = archive.read(next(name for name in entries if name.endswith(".dist-info/METADATA"))).decode()
        for entry in entries:
            parts = PurePosixPath(entry).with_suffix("").parts
            if entry.endswith(".py") and parts[0] in COMPANIONS:
                name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
                modules[name] = ast.parse(archive.read(entry))
    stated = _PINNED.search(metadata) or _VERSION.search(metadata)
    assert stated is not None
    return Wheel(path.name.partition("-")[0], release_of(stated[1]), modules)


class Held:
    """The names that the modules of one release bind, and those of them that are its own."""

    def __init__(self, modules: dict[str, ast.Module]) -> None:
        self._modules = modules

    def has(self, module: str, name: str) -> bool:
        """Whether a module may give a name."""
        if module not in self._modules:
            return False
        names = self.names(module)
        return name in names or "__getattr__" in names or f"{module}.{name}" in self._modules

    def own(self) -> Iterator[tuple[str, str]]:
        """Each module with what it defines, takes from its own package, or has as submodules."""
        for module in self._modules:
            package, dot, last = module.rpartition(".")
            yield from ((package, last),) if dot else ()
            yield from ((module, name) for name in self.names(module, own=True))

    def names(self, module: str, *, own: bool = False, seen: frozenset[str] = frozenset()) -> set[str]:
        """The names that the statements of a module bind, imports from elsewhere only without ``own``."""
        found: set[str] = set()
        if module not in self._modules or module in seen:
            return found
        for node in _at_import(self._modules[module].body):
            if isinstance(node, ast.ImportFrom):
                source = self._source(module, node)
                ours = source.partition(".")[0] in COMPANIONS
                for alias in node.names:
                    if alias.name == "*":
                        inner = self.names(source, own=own, seen=seen | {module})
                        found |= {name for name in inner if not name.startswith("_")}
                    elif ours or not own:
                        found.add(alias.asname or alias.name)
            elif isinstance(node, ast.Import):
                found.update(() if own else (a.asname or a.name.partition(".")[0] for a in node.names))
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
        return found

    def _source(self, module: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        is_package = any(name.startswith(f"{module}.") for name in self._modules)
        parts = module.split(".")
        above = parts[: len(parts) - node.level + is_package]
        return ".".join([*above, *filter(None, [node.module])])


def _at_import(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """What runs when a module is imported: its statements and their parts, nothing inside functions and classes."""
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            stack += ast.iter_child_nodes(node)


def gone(wheels: list[Wheel]) -> Iterator[tuple[Release, str, str]]:
    """The names that a companion held once and the newest of its releases does not: the first torch without it that
    none with it follows, the module, and the name."""
    ordered = sorted(wheels, key=lambda wheel: wheel.torch)
    held = [Held(wheel.modules) for wheel in ordered]
    names = {pair for one in held for pair in one.own()}
    for module, name in sorted(names):
        last = max(at for at, one in enumerate(held) if one.has(module, name))
        goes_whole = module not in ordered[-1].modules and module.rpartition(".")[::2] in names
        if last < len(held) - 1 and not goes_whole:
            yield ordered[last + 1].torch, module, name


def table(wheels: list[Wheel]) -> dict[str, dict[str, str]]:
    """By the first torch without them, and by module, the names that are gone, as words."""
    rows: dict[str, dict[str, list[str]]] = {}
    for companion in COMPANIONS:
        for (major, minor), module, name in gone([wheel for wheel in wheels if wheel.companion == companion]):
            rows.setdefault(f"{major}.{minor}", {}).setdefault(module, []).append(name)
    ordered = sorted(rows.items(), key=lambda row: release_of(row[0]))
    return {key: {module: " ".join(names) for module, names in sorted(found.items())} for key, found in ordered}


def main() -> None:
    """Write the table to the path given, else beside this file."""
    parser = argparse.ArgumentParser(description="Collect what torchvision and torchaudio no longer hold.")
    parser.add_argument("wheel", nargs="+", type=Path, metavar="WHEEL")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("companions.json"))
    options = parser.parse_args()
    wheels = [read(path) for path in options.wheel]
    releases = {c: sorted({w.torch for w in wheels if w.companion == c}) for c in COMPANIONS}
    head = {
        "generator": f"python -m amplint.data.{Path(__file__).stem} WHEEL...",
        "torch": {name: [f"{major}.{minor}" for major, minor in found] for name, found in releases.items()},
    }
    options.out.write_text(json.dumps(head | {"gone": table(wheels)}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
