"""Excludes, files that are named all the same, rules that do not count in some files: options and keys, by the real
command."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from conftest import Completed

if TYPE_CHECKING:
    from pathlib import Path

Run = Callable[..., Completed]


@pytest.fixture
def tree(project: Path) -> Path:
    for name in ("a.py", "old/b.py", "old/gen_pb2.py", "src/gen_pb2.py", "tests/test_a.py", "tests/deep/c.py"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("x.half(); x.double()\n")
    return project


@pytest.fixture
def files(run: Run) -> Callable[..., list[str]]:
    """The files that a run looks at."""

    def shown(*arguments: str) -> list[str]:
        result = run("check", "--show-files", *arguments)
        assert result.status == 0, result.stderr
        return result.stdout.splitlines()

    return shown


def configure(folder: Path, text: str) -> None:
    (folder / "amplint.toml").write_text(text)


def test_excludes_of_the_command_line(tree: Path, files: Callable[..., list[str]]) -> None:
    assert files("--exclude", "old,tests/deep/", "--exclude", "src") == ["a.py", "tests/test_a.py"]
    configure(tree, 'exclude = ["old"]\nextend-exclude = ["/src"]\n')
    assert files() == ["a.py", "tests/deep/c.py", "tests/test_a.py"]
    assert files("--exclude", "tests") == ["a.py", "old/b.py", "old/gen_pb2.py"]
    assert files("--extend-exclude", "tests") == ["a.py"]
    assert files("--isolated", "--exclude", "*_pb2.py", "old") == ["old/b.py"]


def test_patterns_of_the_command_line_are_relative_to_the_current_folder(
    tree: Path, files: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree / "tests")
    assert files("..", "--exclude", "/deep,gen_pb2.py") == [
        str(tree / name) if not name.startswith("tests/") else name.removeprefix("tests/")
        for name in ("a.py", "old/b.py", "tests/test_a.py")
    ]


def test_a_folder_that_is_given_is_spared_but_what_lies_below_is_not(
    tree: Path, files: Callable[..., list[str]]
) -> None:
    configure(tree, 'exclude = ["old", "*_pb2.py"]\n')
    assert files("old", "src/gen_pb2.py") == ["old/b.py", "src/gen_pb2.py"]


@pytest.mark.parametrize(
    ("key", "arguments", "expected"),
    [
        ("", (), ["a.py", "old/b.py", "src/gen_pb2.py", "tests/deep/c.py"]),
        ("", ("--force-exclude",), ["a.py", "tests/deep/c.py"]),
        ("force-exclude = true\n", (), ["a.py", "tests/deep/c.py"]),
        ("force-exclude = true\n", ("--no-force-exclude",), ["a.py", "old/b.py", "src/gen_pb2.py", "tests/deep/c.py"]),
        ("force-exclude = true\n", ("--extend-exclude", "deep"), ["a.py"]),
        ("force-exclude = true\n", ("--exclude", "a.py"), ["old/b.py", "src/gen_pb2.py", "tests/deep/c.py"]),
    ],
)
def test_what_is_excluded_is_so_where_it_is_named(
    tree: Path, files: Callable[..., list[str]], key: str, arguments: tuple[str, ...], expected: list[str]
) -> None:
    configure(tree, f'exclude = ["old/", "*_pb2.py"]\n{key}')
    assert files("a.py", "old/b.py", "src/gen_pb2.py", "tests/deep/c.py", *arguments) == expected
    folders = [name for name in files("old", *arguments) if name.startswith("old/b")]
    assert bool(folders) == ("old/b.py" in expected)


def test_nothing_left_is_said_and_no_failure(tree: Path, run: Run) -> None:
    result = run("check", "--force-exclude", "--exclude", "old", "old/b.py")
    assert (result.status, result.stdout) == (0, "")
    assert result.stderr == "No Python files found.\n1 file was passed over: 1 excluded.\n"


def test_stdin_under_an_excluded_name(tree: Path, run: Run) -> None:
    configure(tree, 'exclude = ["old"]\nforce-exclude = true\n')
    source = b"import torch\nx.half()\n"
    arguments = ("check", "-", "--output-format", "json", "--stdin-filename")
    assert len(json.loads(run(*arguments, "src/new.py", stdin=source).stdout)) == 1
    result = run(*arguments, "old/new.py", stdin=source)
    assert (result.status, result.stdout) == (0, "[]\n")
    assert run("check", "-", "--fix", "--stdin-filename", "old/new.py", stdin=source).stdout == source.decode()
    assert "float16" in run("check", "-", "--fix", "--stdin-filename", "new.py", stdin=source).stdout


def test_gitignore_can_be_disregarded(tree: Path, files: Callable[..., list[str]]) -> None:
    (tree / ".git").mkdir()
    (tree / ".gitignore").write_text("*_pb2.py\n\\\n")
    (tree / "src" / "amplint.toml").write_text("respect-gitignore = false\n")
    assert files() == ["a.py", "old/b.py", "src/gen_pb2.py", "tests/deep/c.py", "tests/test_a.py"]


def test_what_is_passed_over_is_told_apart_from_the_list(tree: Path, run: Run) -> None:
    (tree / ".gitignore").write_text("*_pb2.py\n")
    (tree / "venv").mkdir()
    (tree / "venv" / "x.py").write_text("")
    (tree / ".empty").mkdir()
    configure(tree, 'exclude = ["deep/"]\n')
    result = run("check", "--show-files")
    assert result.stdout.splitlines() == ["a.py", "old/b.py", "tests/test_a.py"]
    assert result.stderr.splitlines() == [
        "old/gen_pb2.py is passed over: named in .gitignore, by '*_pb2.py' in .gitignore",
        "src/gen_pb2.py is passed over: named in .gitignore, by '*_pb2.py' in .gitignore",
        "tests/deep/ (1 file) is passed over: excluded, by 'deep/' in amplint.toml",
        "venv/ (1 file) is passed over: in venv",
    ]
    assert run("check", "--show-files", "-q").stderr == ""
    assert "by 'old' in --exclude" in run("check", "--show-files", "--exclude", "old").stderr


def found(result: Completed) -> list[tuple[str, str]]:
    return [(finding["filename"].rpartition("/")[2], finding["code"]) for finding in json.loads(result.stdout)]


ALL = [("a.py", "TOY101"), ("a.py", "TOY102")]


@pytest.mark.parametrize(
    ("arguments", "table", "tests", "plain"),
    [
        (("--per-file-ignores", "tests/:TOY101"), "", ["TOY102"], ["TOY101", "TOY102"]),
        (("--per-file-ignores", "tests/*:TOY101,toy-double"), "", [], ["TOY101", "TOY102"]),
        (("--per-file-ignores", "tests/:TOY1,a.py:TOY102"), "", [], ["TOY101"]),
        (("--per-file-ignores", "tests/:TOY1", "--per-file-ignores", "a.py:TOY102"), "", [], ["TOY101"]),
        (("--per-file-ignores", "!tests/:ALL"), "", ["TOY101", "TOY102"], []),
        ((), '"tests/**/*.py" = ["TOY102"]', ["TOY101"], ["TOY101", "TOY102"]),
        ((), '"/a.py" = ["TOY1"]\n"test_*.py" = ["TOY101"]', ["TOY102"], []),
        (("--per-file-ignores", "a.py:TOY101"), '"tests/" = ["TOY1"]', ["TOY101", "TOY102"], ["TOY102"]),
        (("--select", "TOY101"), '"tests/" = ["TOY1"]', [], ["TOY101"]),
    ],
)
def test_rules_that_do_not_count_in_some_files(
    tree: Path, run: Run, arguments: tuple[str, ...], table: str, tests: list[str], plain: list[str]
) -> None:
    configure(tree, f"[per-file-ignores]\n{table}\n")
    result = run("check", "--output-format", "json", "tests/test_a.py", "a.py", *arguments)
    assert found(result) == [("a.py", code) for code in plain] + [("test_a.py", code) for code in tests]
    assert result.status == int(bool(tests or plain))


def test_ignored_rules_are_not_fixed_there(tree: Path, run: Run) -> None:
    for name in ("a.py", "tests/test_a.py"):
        (tree / name).write_text("import torch\nx.half()\n")
    run("check", "--fix", "--per-file-ignores", "tests/:TOY101", "a.py", "tests/test_a.py")
    assert "float16" in (tree / "a.py").read_text()
    assert "float16" not in (tree / "tests" / "test_a.py").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--per-file-ignores", "tests"), "--per-file-ignores 'tests' is not PATTERN:RULES, such as tests/:AMP3"),
        (("--per-file-ignores", "TOY101,a.py:TOY1"), "--per-file-ignores 'TOY101,a.py:TOY1' is not PATTERN:RULES"),
        (("--per-file-ignores", "a.py:"), "--per-file-ignores 'a.py:' is not PATTERN:RULES"),
        (("--per-file-ignores", "a.py:TOX101"), "unknown rule selector 'TOX101' (did you mean 'TOY101'?)"),
        (("--exclude", "!"), "--exclude: Invalid git pattern: '!'; patterns are as in .gitignore"),
        (("--extend-exclud", "x"), "No such option '--extend-exclud' (Did you mean one of:"),
    ],
)
def test_what_is_mistyped_is_one_line(tree: Path, run: Run, arguments: tuple[str, ...], message: str) -> None:
    result = run("check", *arguments)
    assert (result.status, result.stdout) == (2, "")
    assert result.stderr.startswith(f"amplint: error: {message}")
    assert result.stderr.count("\n") == 1


def test_a_rule_may_be_left_out_by_either_name(tree: Path, run: Run) -> None:
    for option in ("--ignore", "--extend-ignore"):
        assert found(run("check", "--output-format", "json", "a.py", option, "TOY102")) == [("a.py", "TOY101")]


def test_names_mean_files_outside_of_the_current_folder_too(
    tree: Path, run: Run, files: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "elsewhere").mkdir()
    monkeypatch.chdir(tree / "elsewhere")
    kept = [str(tree / name) for name in ("a.py", "old/b.py", "old/gen_pb2.py", "src/gen_pb2.py")]
    assert files("..", "--exclude", "tests/,/old") == kept
    result = run("check", "--output-format", "json", "..", "--per-file-ignores", "tests/:TOY1,/old:TOY1,*_pb2.py:TOY1")
    assert {finding["filename"] for finding in json.loads(result.stdout)} == set(kept[:2])
