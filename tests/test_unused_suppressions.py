"""AMP900: comments that are meant to silence findings, and silence none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from conftest import amplint

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Completed

    Run = Callable[..., Completed]


def reported(result: Completed) -> list[dict[str, Any]]:
    return [finding for finding in json.loads(result.stdout) if finding["code"] == "AMP900"]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("x = 1  # amplint: ignore[TOY102]", "x = 1", "TOY102 in `# amplint: ignore[TOY102]` silences nothing"),
        ("x = 1  # amplint: ignore", "x = 1", "`# amplint: ignore` silences nothing"),
        ("x = 1\n    # amplint: ignore[TOY1]\ny = 1", "x = 1\ny = 1", "silences nothing"),
        ("# amplint: ignore-file[TOY102]\nx = 1", "x = 1", "silences nothing"),
        ("x = 1\n# amplint: ignore-file", "x = 1", "counts only above the first statement"),
        ("x = 1  # amplint: ignore[]", "x = 1", "names no code"),
        ("x = 1  # amplint: ignore[TOY102] a reason", "x = 1  # a reason", "silences nothing"),
        ("x = 1  # amplint: ignore[TOY102]: a reason", "x = 1  # a reason", "silences nothing"),
        ("x = 1  # a reason  # amplint: ignore[TOY102]", "x = 1  # a reason", "silences nothing"),
        ("x = 1  # amplint: ignore[TOY102]  # noqa: E501", "x = 1  # noqa: E501", "silences nothing"),
        ("x = 1  # noqa: TOY102", "x = 1", "silences nothing"),
        ("x = 1  # noqa: E501, TOY102,F401", "x = 1  # noqa: E501,F401", "TOY102 in `# noqa: E501, TOY102,F401` sil"),
        (
            "x.double()  # amplint: ignore[TOY101, TOY102, TOY1022, TOY108]",
            "x.double()  # amplint: ignore[TOY102]",
            "no rule has the code TOY1022 (did you mean 'TOY102'?); TOY101 and TOY108 in",
        ),
        (
            "x.double()  # amplint: ignore[TOY108, TOY102,  double, TOY1]  # amplint",
            "x.double()  # amplint: ignore[TOY102, TOY1]  # amplint",
            "no rule has the code double (did you mean 'toy-double'?); TOY108 in",
        ),
        ("x = 1  # amplint: ignore[toy-hlaf]", "x = 1", "no rule has the code toy-hlaf (did you mean 'toy-half'?)"),
        ("x = 1  # amplint: disable=TOY102", "x = 1", "write `# amplint: ignore[TOY102]`"),
        (
            "x = 1  # amplint: disable=toy-half,toy-off why",
            "x = 1  # why",
            "write `# amplint: ignore[toy-half, toy-off]`",
        ),
        ("x = 1  # amplint: disable", "x = 1", "write `# amplint: ignore[CODE]`"),
        ("x = 1  # amplint: disable-next-line TOY102", "x = 1", "write `# amplint: ignore[TOY102]`"),
        ("x = 1  # amplint: noqa: TOY102", "x = 1", "write `# amplint: ignore[TOY102]`"),
        ("x = 1  # amplint: ignore TOY102, TOY101", "x = 1", "write `# amplint: ignore[TOY102, TOY101]`"),
        ("x = 1  # amplint: ingore[TOY102]", "x = 1", "write `# amplint: ignore[TOY102]`"),
        ("x = 1  # amplint ignore[TOY102]", "x = 1", "write `# amplint: ignore[TOY102]`"),
        ("x = 1  # amplint: off", "x = 1", "write `# amplint: ignore[CODE]`"),
        ("x = 1  ## amplint: skip", "x = 1", "write `# amplint: ignore[CODE]`"),
        ("# amplint: skip-file\nx = 1", "x = 1", "write `# amplint: ignore-file`"),
        ("# amplint: disable-file=TOY102\nx = 1", "x = 1", "write `# amplint: ignore-file[TOY102]`"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_dead_comment_is_reported_and_removed(
    project: Path, run: Run, before: str, after: str, said: str, newline: str
) -> None:
    file = project / "a.py"
    head = f"é = 'ü'{newline}" if "file" not in before else ""
    file.write_bytes((head + before.replace("\n", newline) + newline).encode())
    found = reported(run("check", "--output-format", "json"))
    assert [finding["severity"] for finding in found] == ["warning"]
    assert said in found[0]["message"]
    result = run("check", "--fix", "--output-format", "json")
    assert (result.status, result.stdout) == (0, "[]\n")
    assert file.read_bytes() == (head + after.replace("\n", newline) + newline).encode()


def test_a_code_is_taken_out_of_a_comment_that_is_used(project: Path, run: Run) -> None:
    file = project / "a.py"
    file.write_text("x.half()  # amplint: ignore[TOY102, TOY101,TOY108] meant\n")
    assert run("check", "--fix").status == 0
    assert file.read_text() == "x.half()  # amplint: ignore[TOY101] meant\n"


@pytest.mark.parametrize(
    "line",
    [
        "x = 1  # noqa",
        "x = 1  # noqa: E501",
        "x = 1  # noqa: TOY999",
        "x = 1  # amplint: see the documentation",
        "x = 1  # amplint ignores this",
        "x = 1  # amplint finds nothing here",
        "x = 1  # amplint: on CUDA this is float16",
        "x = '# amplint: disable'",
        "x.half()  # amplint: ignore",
        "x.half()  # noqa: TOY101",
        "x.half()  # amplint: ignore[toy-half]",
        "x = 1  # amplint: ignore[TOY201]",  # off by default
        "# amplint: ignore-file\nx = 1",
        "x.maybe()  # amplint: ignore[TOY107]",  # only with --pedantic
        "x = 1  # amplint: ignore[TOY102, AMP900]",
        "x = 1  # amplint: ignore[TOY102, unused-suppression]",
        "# amplint: ignore-file[AMP900]\nx = 1  # amplint: ignore[TOY102]",
        "x = 1  # amplint: ignore[TOY102]  # noqa",
    ],
)
def test_other_comments_are_left_alone(project: Path, run: Run, line: str) -> None:
    (project / "a.py").write_text(f"{line}\n")
    result = run("check", "--output-format", "json")
    assert (result.status, json.loads(result.stdout)) == (0, [])


def test_a_code_that_could_silence_reports_is_unused_where_there_is_none(project: Path, run: Run) -> None:
    (project / "a.py").write_text("x.half()  # amplint: ignore[TOY101, AMP900]\n")
    (found,) = reported(run("check", "--output-format", "json"))
    assert found["message"] == "AMP900 in `# amplint: ignore[TOY101, AMP900]` silences nothing"
    assert (found["location"], found["end_location"]) == ({"row": 1, "column": 11}, {"row": 1, "column": 44})


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ((), [1, 2, 3]),
        (("--ignore", "TOY101"), [2]),
        (("--select", "TOY102,AMP900"), [2]),
        (("--select", "TOY102"), []),
        (("--ignore", "AMP900"), []),
        (("--no-plugins",), [1, 2]),
    ],
)
def test_only_codes_that_the_run_selects_are_unused(
    project: Path, run: Run, arguments: tuple[str, ...], lines: list[int]
) -> None:
    (project / "a.py").write_text(
        "x = 1  # amplint: ignore[TOY101]\nx = 1  # amplint: ignore[TOY102]\nx = 1  # amplint: ignore\n"
    )
    found = reported(run("check", "--output-format", "json", *arguments))
    assert [finding["location"]["row"] for finding in found] == lines


def test_an_unknown_code_may_belong_to_a_pack_that_is_not_loaded(project: Path, run: Run) -> None:
    (project / "a.py").write_text("x = 1  # amplint: ignore[MINE101]\n")
    (found,) = reported(run("check", "--output-format", "json"))
    assert "no rule has the code MINE101" in found["message"]
    assert found["fix"]["applicability"] == "unsafe"
    assert run("check", "--isolated").status == 0


def test_nothing_is_unused_where_a_rule_fails(project: Path, run: Run) -> None:
    (project / "a.py").write_text("x.boom()\nx = 1  # amplint: ignore[TOY102]\n")
    assert reported(run("check", "--output-format", "json")) == []


def test_a_fix_takes_the_comment_along_that_it_makes_useless(project: Path, run: Run) -> None:
    file = project / "a.py"
    file.write_text("import torch\n\nx.half()\ny = 1  # amplint: ignore[TOY101]\n")
    result = run("check", "--fix")
    assert (result.status, file.read_text()) == (0, "import torch\n\nx.to(torch.float16)\ny = 1\n")


def test_several_comments_of_a_line_go_one_by_one(project: Path, run: Run) -> None:
    file = project / "a.py"
    file.write_text("x = 1  # amplint: disable  # amplint: ignore[TOY102]  # kept\n")
    assert len(reported(run("check", "--output-format", "json"))) == 2
    assert run("check", "--fix").status == 0
    assert file.read_text() == "x = 1  # kept\n"


def test_it_is_a_rule_among_the_others(project: Path) -> None:
    rules = {rule["code"]: rule for rule in json.loads(amplint("rules", "--output-format", "json").stdout)}
    assert rules["AMP900"]["name"] == "unused-suppression"
    assert (rules["AMP900"]["fix"], rules["AMP900"]["severity"]) == ("safe", "warning")
    assert "AMP900 unused-suppression" in amplint("explain", "AMP900").stdout


def test_a_comment_for_another_scenario_is_used(project: Path) -> None:
    (project / "a.py").write_text(
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.proj = nn.Linear(4, 4)\n\n"
        "    def forward(self, x):\n        return self.proj(x.float())\n"
    )
    assert amplint("check", "--scenario", "bf16", "a.py").status == 1
    assert amplint("check", "--scenario", "fp32", "a.py").status == 0
    text = (project / "a.py").read_text()
    (code,) = {finding["code"] for finding in json.loads(amplint("check", "--output-format", "json", "a.py").stdout)}
    (project / "a.py").write_text(text.replace("float())\n", f"float())  # amplint: ignore[{code}]\n"))
    for scenario in ("auto", "bf16", "fp32"):
        assert amplint("check", "--scenario", scenario, "a.py").status == 0
