"""Names that a file's imports resolve to torch: aliases, scopes, shadowing, ambiguity."""

from __future__ import annotations

import ast

import pytest

from amplint.infer.syntax.references import references


def read(code: str) -> list[tuple[str, str]]:
    """(text, qualified name) of every reference that is not an import."""
    return [
        (ast.unparse(reference.node), reference.name)
        for reference in references(ast.parse(code))
        if not isinstance(reference.node, ast.alias)
    ]


def imported(code: str) -> list[str]:
    return [r.name for r in references(ast.parse(code)) if isinstance(r.node, ast.alias)]


@pytest.mark.parametrize(
    ("statement", "spelling", "name"),
    [
        ("import torch", "torch.cuda.amp.autocast", "torch.cuda.amp.autocast"),
        ("import torch as t", "t.cuda.amp.autocast", "torch.cuda.amp.autocast"),
        ("import torch.cuda.amp", "torch.cuda.amp.autocast", "torch.cuda.amp.autocast"),
        ("import torch.cuda.amp as amp", "amp.autocast", "torch.cuda.amp.autocast"),
        ("from torch import cuda", "cuda.amp.autocast", "torch.cuda.amp.autocast"),
        ("from torch.cuda import amp", "amp.autocast", "torch.cuda.amp.autocast"),
        ("from torch.cuda.amp import autocast", "autocast", "torch.cuda.amp.autocast"),
        ("from torch.cuda.amp import autocast as ac", "ac", "torch.cuda.amp.autocast"),
        ("import torch, torch.nn as nn, torch.nn", "nn.Linear", "torch.nn.Linear"),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None", "torch.ones", "torch.ones"),
        ("try:\n    from torch.amp import autocast\nexcept ImportError:\n    pass", "autocast", "torch.amp.autocast"),
        ("if True:\n    from torch import ones", "ones", "torch.ones"),
    ],
)
def test_imports(statement: str, spelling: str, name: str) -> None:
    assert read(f"{statement}\n{spelling}(1)") == [(spelling, name)]


@pytest.mark.parametrize(
    "code",
    [
        "from .torch import ones\nones()",
        "from . import torch\ntorch.ones()",
        "import torchvision\ntorchvision.ops()",
        "torch.ones()",
        "from torch import *\nones()",
        "try:\n    from torch.amp import ones\nexcept ImportError:\n    from torch.cuda.amp import ones\nones()",
        "try:\n    from torch.cuda.amp import autocast\nexcept ImportError:\n    autocast = None\nautocast()",
        "from torch import ones\nones = 3\nones",
        "from torch import ones\nfor ones in (): pass\nones",
        "from torch import ones\nwith x as ones: pass\nones",
        "from torch import ones\ntry: pass\nexcept E as ones: pass\nones",
        "from torch import ones\nclass ones: pass\nones",
        "from torch import ones\ndef f():\n    global ones\n    ones = 1\nones",
        "from torch import ones\nmatch x:\n    case [ones]: pass\nones",
        "from torch import ones\nmatch x:\n    case {**ones}: pass\nones",
        "from torch import ones\nones()\ndel ones",
        "from torch import ones\n(ones := 3)\nones",
        "import torch\nimport numpy as torch\ntorch.ones()",
    ],
)
def test_nothing_certain(code: str) -> None:
    assert references(ast.parse(code)) == ()


@pytest.mark.parametrize(
    "code",
    [
        "def f(ones): ones",
        "def f(*ones): ones",
        "def f(a, *, ones=1): ones",
        "lambda ones: ones",
        "def f():\n    ones = 1\n    ones",
        "def f():\n    for ones in (): ones",
        "def f():\n    def ones(): ones\n    ones",
        "def f():\n    [y for y in z if (ones := y)]\n    ones",
        "[ones for ones in x]",
        "{ones: 1 for ones in x if ones}",
        "class A:\n    ones = 1\n    ones",
        "def f():\n    ones = 1\n    def g(): ones",
        "def f():\n    ones = 1\n    def g():\n        nonlocal ones\n        ones = 2",
        "def f():\n    from numpy import ones\n    ones",
    ],
)
def test_shadowed_inside_its_scope(code: str) -> None:
    assert read(f"from torch import ones\n{code}\n") == []
    assert read(f"from torch import ones\n{code}\nones()\n") == [("ones", "torch.ones")]


@pytest.mark.parametrize(
    "code",
    [
        "def f(x=ones): pass",
        "@ones\ndef f(ones): pass",
        "def f(ones: ones): pass",
        "def f(ones) -> ones: pass",
        "class A(ones): pass",
        "class A:\n    ones = 1\n    def f(self): ones",
        "class A:\n    ones = 1\n    y = [ones for _ in x]",
        "[z for ones in ones]",
        "lambda x=ones: x",
        "def f():\n    global ones\n    return ones",
        "f'{ones}'",
        "async def f():\n    async with ones: pass",
        "a[ones]",
        "f(*ones)",
        "f(x=ones)",
        "x: ones = 1",
        "y = x.a(ones).b",
    ],
)
def test_read_from_outside(code: str) -> None:
    assert read(f"from torch import ones\n{code}\n") == [("ones", "torch.ones")]


def test_local_imports() -> None:
    code = "def f():\n    from torch import ones\n    def g(): return ones\nones\n"
    code += "def h():\n    import torch\n    torch.zeros\n"
    assert read(code) == [("ones", "torch.ones"), ("torch.zeros", "torch.zeros")]
    assert imported(code) == ["torch.ones", "torch"]


def test_global_import_in_a_function() -> None:
    assert read("def f():\n    global torch\n    import torch\ntorch.ones\n") == [("torch.ones", "torch.ones")]


def test_only_the_outermost_name() -> None:
    code = "import torch\nx = torch.float16.itemsize\ntorch.ones(1).to(torch.half)\ntorch.a.b = torch\n"
    names = ["torch.float16.itemsize", "torch.ones", "torch.half", "torch.a.b", "torch"]
    assert [name for _, name in read(code)] == names


def test_import_aliases() -> None:
    code = "from torch.cuda.amp import autocast as ac, GradScaler\nimport torch.cuda.amp, torch.amp as a\n"
    found = references(ast.parse(code))
    names = ["torch.cuda.amp.autocast", "torch.cuda.amp.GradScaler", "torch.cuda.amp", "torch.amp"]
    assert [reference.name for reference in found] == names
    assert [type(reference.statement).__name__ for reference in found] == ["ImportFrom"] * 2 + ["Import"] * 2


def test_calls_and_decorators() -> None:
    tree = ast.parse(
        "from torch.cuda.amp import autocast, custom_fwd\n"
        "@custom_fwd\ndef f(): pass\n"
        "@autocast(enabled=False)\ndef g(): autocast()\n"
        "partial(autocast, enabled=False)\n"
        "@autocast\nclass C: pass\n"
        "@other(autocast)\ndef h(): pass\n"
    )
    uses = [reference for reference in references(tree) if isinstance(reference.node, ast.Name)]
    assert [(u.node.lineno, u.call is not None, getattr(u.decorates, "name", None)) for u in uses] == [
        (2, False, "f"),
        (4, True, "g"),
        (5, True, None),
        (6, False, None),
        (7, False, "C"),
        (9, False, None),
    ]
    assert all(use.call is None or use.call.func is use.node for use in uses)


def test_deep_nesting_needs_no_recursion() -> None:
    tree = ast.parse("import torch")
    node: ast.expr = ast.parse("torch.ones", mode="eval").body
    for _ in range(5000):
        node = ast.UnaryOp(ast.USub(), node)
    tree.body.append(ast.Expr(node))
    assert {reference.name for reference in references(tree)} == {"torch", "torch.ones"}
