"""The names that a module binds are the same whether it is parsed whole or statement by statement."""

from __future__ import annotations

import ast
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amplint.infer.names.namespace import Namespace, Project
from amplint.source import Source, SourceError

STDLIB = Path(sysconfig.get_paths()["stdlib"])
FILES = sorted([*STDLIB.glob("*.py"), *(STDLIB / "asyncio").glob("*.py"), *Path(__file__).parent.glob("*.py")])


def bindings(source: Source, *, whole: bool) -> dict[str, list[ast.AST]]:
    """What each name is bound to."""
    namespace = Namespace(source, "", Project(), whole=whole)
    found = {name: namespace.parsed(name) for name in [*namespace.bindings]}
    return {name: [*parsed] for name, parsed in found.items() if parsed}


def same(one: object, other: object) -> bool:
    """Whether two trees are equal, with the places of their nodes."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, ast.AST):
        return same(vars(one), vars(other))
    if isinstance(one, dict):
        assert isinstance(other, dict)
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        assert isinstance(other, list)
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def check(source: Source) -> None:
    expected, found = bindings(source, whole=True), bindings(source, whole=False)
    assert found.keys() == expected.keys()
    assert [name for name in expected if not same(found[name], expected[name])] == []


def test_trees_elsewhere_are_not_the_same() -> None:
    first, second = (ast.parse(text).body for text in ("x = f(1)\n", "\nx = f(1)\n"))
    assert not same(first, second)
    assert not same(ast.parse("x = 1").body, ast.parse("x = True").body)
    assert same(ast.parse("x = f(a, 1)").body, ast.parse("x = f(a, 1)").body)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_of_real_files(path: Path) -> None:
    source = Source(path, path.read_bytes())
    try:
        source.tree  # noqa: B018
    except SourceError:
        pytest.skip("not for this Python")
    check(source)


STATEMENTS = (
    "import torch\n",
    "from torch import nn as layers, Tensor\n",
    "from .other import *\n",
    "def f(x):\n    return x\n",
    "@property\n@staticmethod\ndef g(\n    x,\n):\n    '''text\nclass Inner:\n    '''\n",
    "async def h(): pass\n",
    "class A(\n    B,\n):\n    x = 1\n",
    "x = 1\n",
    "x = 1; y = 2\n",
    "x = y = {\n    'a': 1,\n}\n",
    "x: int\n",
    "x: dict[str, int] = {}\n",
    "a, (b, *c) = f()\n",
    "(a, b) = f()\n",
    "a.b = 1\n",
    "a[0] = 1\n",
    "a += 1\n",
    "a == 1\n",
    'text = """\nimport os\ndef inside():\n"""\n',
    'text = \'a # """\'  # """ not a string\n',
    "if a:\n    import os\nelse:\n    os = None\n",
    "try:\n    import triton\nexcept ImportError:\n    triton = None\nfinally:\n    done = True\n",
    "with a as b:\n    c = 1\n",
    "for i in a: d = 1\n",
    "while a:\n    e = 1\n    break\n",
    "# a comment\n\n",
    "del a\n",
    "call(\n    1\n)\n",
    "x = (\n1,\n2)\n",
    "x = \\\n1\n",
    "lines = f(\nname=1,\n)\n",
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(STATEMENTS), max_size=8), st.sampled_from(("\n", "\r\n")), st.booleans())
def test_of_any_order_of_statements(statements: list[str], newline: str, marked: bool) -> None:
    text = "".join(statements).replace("\n", newline)
    check(Source(Path("/module.py"), (b"\xef\xbb\xbf" if marked else b"") + text.encode()))
