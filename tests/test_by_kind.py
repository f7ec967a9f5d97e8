"""The nodes of some kinds are those that ``ast.walk`` meets, in its order, however often and from wherever one asks."""

from __future__ import annotations

import ast
import gc
import sysconfig
import weakref
from pathlib import Path

import pytest

from amplint.infer.syntax.bodies import children
from amplint.infer.syntax.by_kind import nodes_of_kind

STDLIB = Path(sysconfig.get_paths()["stdlib"])
FILES = [STDLIB / "dataclasses.py", STDLIB / "typing.py", *Path(__file__).parent.glob("test_inference*.py")]
LEFT_OUT = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop, ast.alias)
KINDS = (
    (ast.Call,),
    (ast.ClassDef,),
    (ast.arguments,),
    (ast.FunctionDef, ast.AsyncFunctionDef),
    (ast.If, ast.IfExp, ast.While),
    (ast.keyword, ast.arg, ast.Name, ast.Constant),
)
EVERY = """
import a.b as c
from . import d
async def f(x: int = 1, /, *args, y, z=2, **rest) -> None:
    global g
    async for i in x: await i
    async with x as y, z: yield
    return {**rest, 1: [*args], **{k: v for k, v in x if v}}
@f(1)
class C(B, metaclass=M):
    x: int
    (y := 1)
    z = lambda a, *, b=1: a if b else f"{a!r:>{b}}"
    del x[1:2, ...]
    try: pass
    except* E as e: raise e from None
    else: assert x, y
    finally: x += not y < 1 <= 2 and 3 @ 4
match x:
    case {"k": [1, *a], **b} | P(1, q=None) as w if w: pass
"""


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


def walked(root: ast.AST, *kinds: type[ast.AST]) -> list[ast.AST]:
    return [node for node in ast.walk(root) if type(node) in kinds]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@pytest.mark.parametrize("kinds", KINDS, ids=lambda kinds: kinds[0].__name__)
def test_of_real_files(path: Path, kinds: tuple[type[ast.AST], ...]) -> None:
    tree = parse(path)
    assert nodes_of_kind(tree, *kinds) == walked(tree, *kinds)


def test_of_every_kind_from_every_node() -> None:
    source = EVERY if hasattr(ast, "TryStar") else EVERY.replace("except*", "except")
    tree = ast.parse(source)
    kinds = sorted({type(node) for node in ast.walk(tree) if not isinstance(node, LEFT_OUT)}, key=lambda k: k.__name__)
    for root in ast.walk(tree):
        if not isinstance(root, LEFT_OUT):
            assert nodes_of_kind(root, *kinds) == walked(root, *kinds)
            for kind in kinds:
                assert nodes_of_kind(root, kind) == walked(root, kind)


def test_the_root_is_one_of_its_kind() -> None:
    outer = ast.parse("class A:\n    class B: pass").body[0]
    assert [node.name for node in nodes_of_kind(outer, ast.ClassDef)] == ["A", "B"]


def test_a_base_of_kinds_is_no_kind() -> None:
    assert nodes_of_kind(ast.parse("f(x)"), ast.expr) == []


def test_the_answer_is_the_callers_own() -> None:
    tree = ast.parse("f(g(x))")
    nodes_of_kind(tree, ast.Call).clear()
    assert len(nodes_of_kind(tree, ast.Call)) == 2


def test_a_tree_is_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tree, walks = ast.parse("f(x)"), []

    def noted(node: ast.AST) -> list[ast.AST]:
        walks.append(node)
        return children(node)

    monkeypatch.setattr("amplint.infer.syntax.by_kind.children", noted)
    for kind in (ast.Call, ast.Name, ast.Call):
        nodes_of_kind(tree, kind)
    assert walks == [tree]


def test_a_tree_goes_with_its_last_user() -> None:
    """Without waiting for the garbage collector: amplint lets that run seldom."""
    tree = ast.parse("class A:\n    def f(self): return g(self)")
    for root in ast.walk(tree):
        if not isinstance(root, LEFT_OUT):
            nodes_of_kind(root, ast.Call)
    gone = weakref.ref(tree)
    gc.disable()
    try:
        del tree, root
        assert gone() is None
    finally:
        gc.enable()
