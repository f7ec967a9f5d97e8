"""``check --add-ignore``: comments where something is found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from conftest import amplint
from test_one_cause import FUNCTION

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Completed

    Run = Callable[..., Completed]

IGNORE = "  # amplint: ignore"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x.double()\n", f"x.double(){IGNORE}[TOY102]\n"),
        ("x.double()", f"x.double(){IGNORE}[TOY102]"),
        ("x.double()\r\ny = 'ü'\r\n", f"x.double(){IGNORE}[TOY102]\r\ny = 'ü'\r\n"),
        ("x.double()   \n", f"x.double(){IGNORE}[TOY102]\n"),
        ("x.half(); y.double(); z.half()\n", f"x.half(); y.double(); z.half(){IGNORE}[TOY101, TOY102]\n"),
        ("x.double()  # type: ignore\n", f"x.double()  # type: ignore{IGNORE}[TOY102]\n"),
        ("x.double()  # amplint: ignore[TOY108] why\n", "x.double()  # amplint: ignore[TOY108, TOY102] why\n"),
        ("x.double()  # amplint: ignore[]\n", "x.double()  # amplint: ignore[TOY102]\n"),
        ("# amplint: ignore[TOY108] why\nx.double()\n", "# amplint: ignore[TOY108, TOY102] why\nx.double()\n"),
        ("x.double()  # noqa: E501\n", f"x.double()  # noqa: E501{IGNORE}[TOY102]\n"),
        ("# amplint: ignore-file[TOY101]\nx.half(); x.double()\n", None),
        ("x.double(\n    1,\n)\n", f"x.double({IGNORE}[TOY102]\n    1,\n)\n"),
        ("y = x.double() + \\\n    1\n", f"y = x.double() + \\\n    1{IGNORE}[TOY102]\n"),
        (
            "y = x.double() + \\\n    1 + \\\n    x.half()\n",
            f"y = x.double() + \\\n    1 + \\\n    x.half(){IGNORE}[TOY101, TOY102]\n",
        ),
        ('y = x.double("""\na""", 1)\nz = 2\n', f'y = x.double("""\na""", 1){IGNORE}[TOY102]\nz = 2\n'),
        ('y = f"""{x.double()}\n"""\n', f'y = f"""{{x.double()}}\n"""{IGNORE}[TOY102]\n'),
        ('y = f"""{\n    x.double()\n}"""\n', f'y = f"""{{\n    x.double()\n}}"""{IGNORE}[TOY102]\n'),
        ("if x.double():\n    pass\n", f"if x.double():{IGNORE}[TOY102]\n    pass\n"),
        ("@f(x.double())\nclass A: pass\n", f"@f(x.double()){IGNORE}[TOY102]\nclass A: pass\n"),
        (
            "y = [\n    x.double(),  # one\n    x.half(),\n]\n",
            f"y = [\n    x.double(),  # one{IGNORE}[TOY102]\n    x.half(),{IGNORE}[TOY101]\n]\n",
        ),
    ],
)
def test_a_second_run_finds_nothing(project: Path, run: Run, before: str, after: str | None) -> None:
    file = project / "a.py"
    file.write_bytes(before.encode())
    result = run("check", "--add-ignore", "--ignore", "AMP900")
    assert (result.status, result.stdout) == (0, "")
    if after is not None:
        assert file.read_bytes() == after.encode()
    again = run("check", "--output-format", "json", "--ignore", "AMP900")
    assert (again.status, again.stdout) == (0, "[]\n")
    written = file.read_bytes()
    assert run("check", "--add-ignore", "--ignore", "AMP900").status == 0
    assert file.read_bytes() == written


def test_it_says_how_many(project: Path, run: Run) -> None:
    (project / "a.py").write_text("x.half()\ny = 1\nx.double()\n")
    (project / "b.py").write_text("x.half()\n")
    result = run("check", "--add-ignore")
    assert "amplint: added `# amplint: ignore` for 3 findings in 2 files\n" in result.stderr
    assert "All checks passed: 2 files." in result.stderr


def test_what_a_comment_cannot_silence_is_reported(project: Path, run: Run) -> None:
    (project / "a.py").write_text("x.half(\n")
    (project / "b.py").write_text("x.half()  # amplint: disable\n")
    result = run("check", "--add-ignore", "--output-format", "json")
    assert [finding["code"] for finding in json.loads(result.stdout)] == ["AMP901", "AMP900"]
    assert result.status == 1
    assert (project / "b.py").read_text() == f"x.half()  # amplint: disable{IGNORE}[TOY101]\n"
    assert "for 1 finding in 1 file" in result.stderr


def test_only_what_is_reported_gets_a_comment(project: Path, run: Run) -> None:
    file = project / "a.py"
    file.write_text("x.half()\nx.double()\n")
    assert run("check", "--select", "TOY102", "--add-ignore").status == 0
    assert file.read_text() == f"x.half()\nx.double(){IGNORE}[TOY102]\n"


def test_a_file_that_cannot_be_written_is_an_error(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from amplint.fix import writing

    def refuse(*arguments: object) -> None:
        raise PermissionError(13, "Permission denied")

    (project / "a.py").write_text("x.half()\n")
    monkeypatch.setattr(writing, "put", refuse)
    result = run("check", "--add-ignore")
    assert result.status == 2
    assert "cannot write" in result.stderr
    assert "Permission denied" in result.stderr
    assert (project / "a.py").read_text() == "x.half()\n"


@pytest.mark.parametrize("option", ["--fix", "--diff", "--verify"])
def test_what_does_not_go_with_it(project: Path, run: Run, option: str) -> None:
    result = run("check", "--add-ignore", option)
    assert (result.status, result.stderr) == (2, f"amplint: error: --add-ignore does not go with {option}\n")


def test_it_writes_files_not_stdin(project: Path, run: Run) -> None:
    result = run("check", "--add-ignore", "-", stdin=b"x.half()\n")
    assert (result.status, result.stderr) == (2, "amplint: error: --add-ignore does not go with - (stdin)\n")


def test_one_cause_in_several_places_is_silenced_in_each(project: Path) -> None:
    file = project / "a.py"
    file.write_text(FUNCTION)
    found = json.loads(amplint("check", "--output-format", "json").stdout)
    assert [finding["code"] for finding in found] == ["AMP201", "AMP204"]
    result = amplint("check", "--add-ignore")
    assert "for 2 findings in 1 file" in result.stderr
    silenced = [line.strip() for line in file.read_text().splitlines() if "amplint" in line]
    assert silenced == [
        f"def forward(ctx, x, weight):{IGNORE}[AMP201]",
        f"def backward(ctx, grad):{IGNORE}[AMP202]",
        f"return grad @ weight.t(), x.t() @ grad{IGNORE}[AMP204]",
    ]
    assert amplint("check").status == 0
