"""What imports what inside amplint: circles, and what rules take from it.

    python benchmarks/imports.py

Every import counts: those for types alone, and those inside functions. A circle is printed with its imports, each with
its kind (``now``, ``late`` inside a function, ``types``); what rules import is printed by module, each name with the
number of files in ``rules/`` that do.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parent.parent
Graph = dict[str, dict[str, str]]
"""The modules that each module imports, with the kind of the import that matters most."""

_KINDS = ("now", "late", "types")


def main() -> int:
    imports = graph("amplint")
    found = circles(imports)
    for circle in found:
        print(f"circle of {len(circle)}: {', '.join(sorted(circle))}")
        for module in sorted(circle):
            inside = [f"{other} ({kind})" for other, kind in sorted(imports[module].items()) if other in circle]
            print(f"  {module} -> {', '.join(inside)}")
    print(f"{len(found)} circles with {sum(map(len, found))} of {len(imports)} modules\n")
    for module, names in sorted(rule_imports().items()):
        print(f"{module}: {', '.join(f'{name} ({count})' for name, count in sorted(names.items()))}")
    print(f"{sum(map(len, rule_imports().values()))} names of {len(rule_imports())} modules")
    return 0


def graph(package: str) -> Graph:
    """The imports between the modules of a package, which is a folder of the project."""
    paths = {_name(path): path for path in sorted((ROOT / package).rglob("*.py"))}
    found: Graph = {}
    for name, path in paths.items():
        folder = name if path.name == "__init__.py" else name.rpartition(".")[0]
        of_module: dict[str, str] = {}
        for node, kind in _imports(ast.parse(path.read_bytes()), "now"):
            for other in _modules(node, folder, paths):
                if other != name:
                    of_module[other] = min(kind, of_module.get(other, kind), key=_KINDS.index)
        found[name] = of_module
    return found


def circles(imports: Mapping[str, Mapping[str, str]]) -> list[set[str]]:
    """Sets of modules each of which leads to all others, the largest first."""
    ahead = {module: _reached(module, imports) for module in imports}
    found: list[set[str]] = []
    for module, reached in ahead.items():
        if module in reached and not any(module in circle for circle in found):
            found.append({other for other in reached if module in ahead[other]})
    return sorted(found, key=lambda circle: (-len(circle), sorted(circle)))


def rule_imports() -> dict[str, Counter[str]]:
    """What the files of ``rules/`` import from amplint: modules, and names with the number of files that do."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for path in sorted((ROOT / "rules").glob("amp*.py")):
        names = {
            (node.module, alias.name)
            for node, _ in _imports(ast.parse(path.read_bytes()), "now")
            if isinstance(node, ast.ImportFrom) and not node.level and node.module
            for alias in node.names
            if node.module.partition(".")[0] == "amplint"
        }
        for module, name in names:
            found[module][name] += 1
    return dict(found)


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if path.name == "__init__.py" else parts)


def _imports(node: ast.AST, kind: str) -> Iterator[tuple[ast.Import | ast.ImportFrom, str]]:
    """The imports below a node, and of which kind they are."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child, kind
        elif isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            yield from _imports(child, "types")
        elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _imports(child, "late")
        else:
            yield from _imports(child, kind)


def _modules(node: ast.Import | ast.ImportFrom, folder: str, known: Mapping[str, Path]) -> Iterator[str]:
    """The known modules that an import in a folder is of."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in known)
        return
    base = node.module or ""
    if node.level:
        above = folder.split(".")[: len(folder.split(".")) - node.level + 1]
        base = ".".join([*above, *([node.module] if node.module else [])])
    for alias in node.names:
        inside = f"{base}.{alias.name}"
        if inside in known:
            yield inside
        elif base in known:
            yield base


def _reached(module: str, imports: Mapping[str, Mapping[str, str]]) -> set[str]:
    """What a module imports, and what that does, and so on."""
    reached: set[str] = set()
    waiting = [module]
    while waiting:
        new = imports[waiting.pop()].keys() - reached
        reached |= new
        waiting += new
    return reached


if __name__ == "__main__":
    sys.exit(main())
