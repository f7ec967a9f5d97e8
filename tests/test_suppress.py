"""Suppression comments."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Completed


@pytest.mark.parametrize(
    ("line", "hidden"),
    [
        ("x.double()  # amplint: ignore", True),
        ("x.double()  #amplint:ignore", True),
        ("x.double()  # amplint: ignore[TOY102]", True),
        ("x.double()  # amplint: ignore[TOY101, TOY102]", True),
        ("x.double()  # amplint: ignore[toy-double]", True),
        ("x.double()  # amplint: ignore[TOY1]", True),
        ("x.double()  # why  # amplint: ignore[TOY102]", True),
        ("x.double()  # amplint: ignore[TOY101]", False),
        ("x.double()  # amplint: ignore[]", False),
        ("x.double()  # amplint: ignore-file", False),
        ("x.double()  # noqa", True),
        ("x.double()  # NOQA: TOY102", True),
        ("x.double()  # noqa: E501, TOY102", True),
        ("x.double()  # noqa:E501 TOY102", True),
        ("x.double()  # noqa: E501", False),
        ("x.double()  # noqa: whatever", False),
        ("x.double()  # type: ignore", False),
        ("x.double('# amplint: ignore')", False),
        ("x.double('noqa')", False),
        ("# amplint: ignore\nx.double()", True),
        ("x.double(  # amplint: ignore\n    1,\n)", True),
        ("x.double(\n    1,\n)  # amplint: ignore", True),
        ("x.double(\n    1,  # amplint: ignore\n)", False),
        ("# amplint: ignore-file\n'''Doc.'''\nx.double()", True),
        ("#!/usr/bin/python\n'''Doc.'''\n# amplint: ignore-file\nx.double()", True),
        ("'# amplint: ignore-file'\nx.double()", False),
        ("y = 1\n# amplint: ignore-file\nx.double()", False),
        ("# amplint: ignore-file[TOY102]\nx.double()", True),
        ("# amplint: ignore-file[TOY101]\nx.double()", False),
        ("'Doc.'  # amplint: ignore-file [toy-double]\nx.double()", True),
        ("x.double()  # amplint: ignore[TOY102] it is meant", True),
        ("x.double()  # amplint: ignore TOY102", False),
        ("x.double()  # amplint: ignore=TOY102", False),
        ("x.double()  # amplint: disable=TOY102", False),
        # alone above
        ("# amplint: ignore[TOY102] why\nx.double()", True),
        ("# amplint: ignore[TOY101]\nx.double()", False),
        ("# amplint: ignore[TOY102]\n# more words\nx.double()", True),
        ("# words\n# amplint: ignore[TOY102]\nx.double()", True),
        ("# amplint: ignore[TOY102]\n\nx.double()", False),
        ("x.double()\n# amplint: ignore[TOY102]", False),
        ("# amplint: ignore[TOY102]\ny = 1\nx.double()", False),
        ("y = 1  # amplint: ignore[TOY102]\nx.double()", False),
        ("# noqa: TOY102\nx.double()", False),
        ("if y:\n    # amplint: ignore[TOY102]\n    x.double()", True),
        ("# amplint: ignore[TOY102]\nif y:\n    x.double()", False),
        ("# amplint: ignore[TOY102]\nif x.double():\n    pass", True),
        # statements of several lines
        ("# amplint: ignore[TOY102]\ny = f(\n    1,\n    x.double(),\n)", True),
        ("y = f(  # amplint: ignore[TOY102]\n    1,\n    x.double(),\n)", True),
        ("y = f(\n    1,\n    x.double(),\n)  # amplint: ignore[TOY102]", True),
        ("y = f(\n    1,\n    x.double(),\n)  # noqa: TOY102", True),
        ("y = f(\n    1,  # amplint: ignore[TOY102]\n    x.double(),\n)", False),
        ("y = f(\n    # amplint: ignore[TOY102]\n    x.double(),\n)", True),
        ("y = f(\n    # amplint: ignore[TOY102]\n    # why\n    x.double(),\n)", True),
        ("y = f(\n    # amplint: ignore[TOY102]\n    1,\n    x.double(),\n)", False),
        ("y = x.double() + \\\n    1  # amplint: ignore[TOY102]", True),
        ('y = f(x.double(), """\n""")  # amplint: ignore[TOY102]', True),
        # above decorators
        ("# amplint: ignore[TOY102]\n@f\n@g\ndef h(y=x.double()):\n    pass", True),
        ("@f\n# amplint: ignore[TOY102]\n@g\ndef h(y=x.double()):\n    pass", True),
        ("# amplint: ignore[TOY102]\n@f\ndef h(y):\n    x.double()", False),
    ],
)
def test_comments(project: Path, run: Callable[..., Completed], line: str, hidden: bool) -> None:
    (project / "a.py").write_text(f"{line}\n")
    result = run("check", "--output-format", "json", "--ignore", "AMP900")
    assert json.loads(result.stdout) == [] if hidden else len(json.loads(result.stdout)) == 1
    assert result.status == (0 if hidden else 1)


def test_a_suppressed_finding_is_not_fixed(project: Path, run: Callable[..., Completed]) -> None:
    file = project / "a.py"
    file.write_text("import torch\nx.half()  # noqa\ny.half()\n")
    assert run("check", "--fix").status == 0
    assert file.read_text() == "import torch\nx.half()  # noqa\ny.to(torch.float16)\n"
