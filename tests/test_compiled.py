"""What mypyc makes of the inference: it finds the same, and no form is used that it compiles to something else."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
SETUP = ast.parse((ROOT / "setup.py").read_text())
COMPILED = next(
    ast.literal_eval(node.value)
    for node in SETUP.body
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "COMPILED"
)
TREES = {path: ast.parse(path.read_text()) for part in COMPILED for path in (ROOT / "amplint").glob(part)}


@pytest.mark.skipif("AMPLINT_TEST_COMPILED" not in os.environ, reason="compiles for minutes: AMPLINT_TEST_COMPILED=1")
def test_the_compiled_wheel_finds_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import compiled

    monkeypatch.setenv("MYPYC_OPT_LEVEL", "0")
    made, pure = compiled.unpacked_ways(compiled.build(tmp_path / "wheel"), tmp_path)
    assert [*made.rglob("analysis.*.so")]
    assert not [*pure.rglob("*.so")]
    row = compiled.compared(ROOT / "fixtures", made, pure, runs=1)
    assert row["the same"] == "yes"
    assert int(str(row["findings"])) > 200


def test_no_bound_of_a_slice_changes_anything() -> None:
    """mypyc computes those of slices of what is merely a sequence twice."""
    bounds = [
        (path, bound.lineno)
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Slice)
        for bound in (node.lower, node.upper, node.step)
        if bound is not None and any(map(_changes, ast.walk(bound)))
    ]
    assert not bounds


def _changes(node: ast.AST) -> bool:
    name = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
    return isinstance(node, ast.NamedExpr) or name in ("next", "pop", "popleft", "read", "send")


def test_nothing_is_looked_for_in_a_generator() -> None:
    """``x in made()``: those that mypyc makes cannot be asked."""
    functions = [node for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    others = {function.name for function in functions if not _yields(function)}
    makers = {function.name for function in functions} - others
    assert "ancestors" in makers
    assert not [(path, name) for path, tree in TREES.items() for name in _asked(tree) if name in makers]


def test_nothing_is_looked_for_in_parts_of_another() -> None:
    """``x in (y, *z)``: mypyc does not know the star there."""
    assert not [
        (path, node.lineno)
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        for op, part in zip(node.ops, node.comparators, strict=True)
        if isinstance(op, ast.In | ast.NotIn) and isinstance(part, ast.Tuple | ast.List | ast.Set)
        if any(isinstance(item, ast.Starred) for item in part.elts)
    ]


def _asked(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.ops[-1], ast.In | ast.NotIn):
            call = node.comparators[-1]
            if isinstance(call, ast.Call):
                yield getattr(call.func, "id", getattr(call.func, "attr", ""))


def _yields(function: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))


def _classes(tree: ast.Module) -> list[ast.ClassDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def test_what_inherits_from_a_class_of_python_is_no_extension_type() -> None:
    """From 3.12 on Python has no such type that inherits a ``__dict__``."""
    bare = [cls for tree in TREES.values() for cls in _classes(tree) if not cls.decorator_list]
    assert not [cls.name for cls in bare if any(isinstance(base, ast.Attribute) for base in cls.bases)]


def test_what_is_kept_lies_in_a_dict() -> None:
    """Of ``cached_property`` mypyc makes a property that keeps nothing, and an extension type has no ``__dict__``."""
    keeping = [cls for tree in TREES.values() for cls in _classes(tree) if "@kept" in ast.unparse(cls)]
    assert len(keeping) > 5
    assert all(cls.decorator_list for cls in keeping)
    assert not [path for path in TREES if "@cached_property" in path.read_text()]


def test_nothing_else_inherits_from_what_is_compiled() -> None:
    """Extension types refuse it, and of a class that it knows no others to inherit from mypyc takes no others."""
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in TREES}
    others = {path for folder in ("amplint", "rules") for path in (ROOT / folder).rglob("*.py")} - TREES.keys()
    found = []
    for path in sorted(others):
        tree = ast.parse(path.read_text())
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module in modules]
        names = {alias.asname or alias.name for node in imports for alias in node.names}
        found += [cls.name for cls in _classes(tree) if any(ast.unparse(base) in names for base in cls.bases)]
    assert not found
