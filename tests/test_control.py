"""The one control flow: where statements lead."""

from __future__ import annotations

import ast

import pytest

from amplint.infer.syntax.control import goes_on

LEAVE = (
    "return",
    "if a:\n    return\nelse:\n    raise E",
    "while True:\n    f()",
    "with a:\n    return f()",
    "for x in y:\n    pass\nelse:\n    return",
    "try:\n    return f()\nfinally:\n    g()",
    "try:\n    f()\nfinally:\n    return",
    "try:\n    return f()\nexcept Exception:\n    raise",
    "match x:\n    case 1:\n        return\n    case _:\n        raise E",
)
GO_ON = (
    "pass",
    "if a:\n    return",
    "while True:\n    if f():\n        break",
    "while a:\n    return",
    "for x in y:\n    return",
    "for x in y:\n    break\nelse:\n    return",
    "try:\n    return f()\nexcept E:\n    pass",
    "match x:\n    case 1:\n        return\n    case 2:\n        return",
    "def f():\n    return",
)


@pytest.mark.parametrize("code", LEAVE)
def test_nothing_runs_behind_statements_that_leave_on_every_path(code: str) -> None:
    assert not goes_on(ast.parse(code).body)


@pytest.mark.parametrize("code", GO_ON)
def test_the_program_may_go_on_behind_all_others(code: str) -> None:
    assert goes_on(ast.parse(code).body)
