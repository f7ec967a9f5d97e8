"""Configurations that extend others: what adds up, what wins, what is wrong in which file."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from conftest import Completed

if TYPE_CHECKING:
    from pathlib import Path

Run = Callable[..., Completed]


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture
def found(run: Run) -> Callable[..., list[tuple[str, str]]]:
    def check(*arguments: str) -> list[tuple[str, str]]:
        result = run("check", "--output-format", "json", *arguments)
        assert "amplint: error" not in result.stderr
        return [(finding["filename"].rpartition("/")[2], finding["code"]) for finding in json.loads(result.stdout)]

    return check


SOURCE = "x.half(); x.double(); x.off(); x.shown()\n"


@pytest.mark.parametrize(
    ("base", "own", "codes"),
    [
        ('select = ["TOY101"]', "", ["TOY101"]),
        ('select = ["TOY101"]', 'select = ["TOY102"]', ["TOY102"]),
        ('select = ["TOY101"]', "select = []", ["TOY101", "TOY102", "TOY202"]),
        (
            'select = ["TOY101"]\nextend-select = ["TOY201"]',
            'extend-select = ["TOY102"]',
            ["TOY101", "TOY102", "TOY201"],
        ),
        ('ignore = ["TOY101"]', 'ignore = ["TOY102"]', ["TOY101", "TOY202"]),
        ('ignore = ["TOY101"]', 'extend-ignore = ["TOY102"]', ["TOY202"]),
        ('extend-ignore = ["TOY101"]', 'extend-ignore = ["TOY102"]', ["TOY202"]),
        ('[per-file-ignores]\n"a.py" = ["TOY1"]', '[per-file-ignores]\n"b.py" = ["TOY2"]', ["TOY202"]),
        ('[per-file-ignores]\n"a.py" = ["TOY1"]', '[per-file-ignores]\n"a.py" = []', ["TOY101", "TOY102", "TOY202"]),
        ('min-certainty = "proven"', "", ["TOY101", "TOY202"]),
        ('min-certainty = "proven"', 'min-certainty = "likely"', ["TOY101", "TOY102", "TOY202"]),
    ],
)
def test_keys_win_and_extend_keys_add_up(
    project: Path, found: Callable[..., list[tuple[str, str]]], base: str, own: str, codes: list[str]
) -> None:
    write(project, {"base.toml": base, "amplint.toml": f'extend = "base.toml"\n{own}', "a.py": SOURCE})
    assert found("a.py") == [("a.py", code) for code in codes]


def test_a_chain_through_kinds_of_files(project: Path, found: Callable[..., list[tuple[str, str]]]) -> None:
    write(
        project,
        {
            "shared/pyproject.toml": '[tool.amplint]\nextend = "deep/all.toml"\nignore = ["TOY101"]\n',
            "shared/deep/all.toml": 'extend-select = ["TOY201"]\nignore = ["TOY102"]\n',
            "pkg/pyproject.toml": '[tool.amplint]\nextend = "../shared/pyproject.toml"\nextend-ignore = ["TOY202"]\n',
            "pkg/a.py": SOURCE,
        },
    )
    assert found("pkg") == [("a.py", "TOY102"), ("a.py", "TOY201")]
    assert found("pkg", "--config", "shared/deep/all.toml") == [
        ("a.py", "TOY101"),
        ("a.py", "TOY201"),
        ("a.py", "TOY202"),
    ]


def test_patterns_are_relative_to_the_file_that_has_them(project: Path, run: Run) -> None:
    write(
        project,
        {
            "amplint.toml": 'exclude = ["/pkg/gen", "*_pb2.py"]\n',
            "conf/other.toml": 'extend-exclude = ["/pkg/keep", "tests"]\n',
            "pkg/amplint.toml": 'extend = "../amplint.toml"\n',
            "two/amplint.toml": 'extend = "../conf/other.toml"\nextend-exclude = ["/gen"]\n',
            **{f"{folder}/{name}": "" for folder in ("pkg", "two") for name in ("a.py", "gen/a.py", "x_pb2.py")},
            "two/tests/a.py": "",
            "two/pkg/keep/a.py": "",
        },
    )
    assert run("check", "--show-files").stdout.splitlines() == [
        *("pkg/a.py", "two/a.py", "two/pkg/keep/a.py", "two/x_pb2.py")
    ]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"amplint.toml": 'extend = "nowhere.toml"'}, "/amplint.toml: 'extend': cannot read {}/nowhere.toml: No such"),
        ({"amplint.toml": 'extend = "b.toml"', "b.toml": "["}, "/amplint.toml: 'extend': {}/b.toml is not valid TOML"),
        (
            {"amplint.toml": 'extend = "pyproject.toml"', "pyproject.toml": '[project]\nname = "amplint"\n'},
            "/amplint.toml: 'extend': {}/pyproject.toml has no table [tool.amplint]",
        ),
        (
            {"amplint.toml": 'extend = "b.toml"', "b.toml": 'extend = "./amplint.toml"'},
            "/b.toml: 'extend' leads back to where it began: {0}/amplint.toml -> {0}/b.toml -> {0}/amplint.toml",
        ),
        ({"amplint.toml": 'extend = "amplint.toml"'}, "/amplint.toml: 'extend' leads back to where it began: "),
        (
            {"amplint.toml": 'extend = "b.toml"', "b.toml": 'extned = "c"'},
            "/b.toml: unknown key 'extned' (did you mean",
        ),
        ({"amplint.toml": 'extend = "b.toml"', "b.toml": 'ignore = ["TOX1"]'}, "/b.toml: unknown rule selector 'TOX1'"),
        (
            {"amplint.toml": 'extend = "b.toml"\nscenarios = ["bf61"]', "b.toml": ""},
            "/amplint.toml: unknown scenario 'bf61' (did you mean 'bf16'?)",
        ),
        (
            {"amplint.toml": 'extend = "b.toml"\ndevice = "cuda"', "b.toml": 'device = "cude"'},
            "/b.toml: unknown device 'cude' (did you mean 'cuda'?)",
        ),
        ({"amplint.toml": 'extend = "b.toml"', "b.toml": 'plugins = ["no_pack"]'}, "/b.toml: the rule pack no_pack is"),
        ({"amplint.toml": 'extend = ["b.toml"]'}, "/amplint.toml: 'extend' must be a string"),
    ],
)
def test_what_is_wrong_names_its_file(project: Path, run: Run, files: dict[str, str], message: str) -> None:
    write(project, {**files, "a.py": SOURCE, "sub/b.py": SOURCE})
    result = run("check")
    assert (result.status, result.stdout) == (2, "")
    assert result.stderr.startswith(f"amplint: error: {project}{message.format(project)}")
    assert result.stderr.count("\n") == 1
    assert run("check", "--isolated").status == 1


def test_two_that_extend_a_broken_one_are_told_once(project: Path, run: Run) -> None:
    write(project, {"b.toml": "selekt = 1", "one/a.py": SOURCE, "two/a.py": SOURCE, "three/a.py": SOURCE})
    write(project, {f"{name}/amplint.toml": 'extend = "../b.toml"' for name in ("one", "two")})
    result = run("check", "--output-format", "json")
    assert result.status == 2
    assert result.stderr.count("unknown key 'selekt'") == 1
    assert {finding["filename"] for finding in json.loads(result.stdout)} == {str(project / "three" / "a.py")}
