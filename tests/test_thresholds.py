"""What is below a threshold is neither reported nor fixed nor counted; which keys and options say so."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from conftest import Completed, amplint

if TYPE_CHECKING:
    from pathlib import Path

Run = Callable[..., Completed]

SOURCE = "import torch\nx.half(); x.double(); x.maybe()\n"
"""TOY101 is a proven error, TOY102 a likely warning, TOY107 a possible error."""


@pytest.mark.parametrize(
    ("keys", "arguments", "codes"),
    [
        ("", (), ["TOY101", "TOY102"]),
        ("", ("--pedantic",), ["TOY101", "TOY102", "TOY107"]),
        ("", ("--min-certainty", "possible"), ["TOY101", "TOY102", "TOY107"]),
        ("", ("--min-certainty", "likely"), ["TOY101", "TOY102"]),
        ("", ("--min-certainty", "proven"), ["TOY101"]),
        ("", ("--min-severity", "warning"), ["TOY101", "TOY102"]),
        ("", ("--min-severity", "error"), ["TOY101"]),
        ("", ("--min-severity", "error", "--pedantic"), ["TOY101", "TOY107"]),
        ('min-certainty = "proven"', (), ["TOY101"]),
        ('min-certainty = "proven"', ("--min-certainty", "likely"), ["TOY101", "TOY102"]),
        ('min-certainty = "proven"', ("--pedantic",), ["TOY101", "TOY102", "TOY107"]),
        ('min-certainty = "proven"', ("--isolated",), ["TOY101", "TOY102"]),
        ("pedantic = true", (), ["TOY101", "TOY102", "TOY107"]),
        ("pedantic = true", ("--min-certainty", "proven"), ["TOY101"]),
        ("pedantic = false", (), ["TOY101", "TOY102"]),
        ('min-severity = "error"', (), ["TOY101"]),
        ('min-severity = "error"', ("--min-severity", "warning"), ["TOY101", "TOY102"]),
    ],
)
def test_what_counts(project: Path, run: Run, keys: str, arguments: tuple[str, ...], codes: list[str]) -> None:
    (project / "amplint.toml").write_text(keys)
    (project / "a.py").write_text(SOURCE)
    result = run("check", "--output-format", "json", *arguments)
    assert [finding["code"] for finding in json.loads(result.stdout)] == codes
    assert f"Found {len(codes)} finding" in result.stderr


def test_nothing_above_is_no_finding(project: Path, run: Run) -> None:
    (project / "a.py").write_text("x.double()\n")
    result = run("check", "--min-certainty", "proven")
    assert (result.status, result.stdout, result.stderr) == (0, "", "All checks passed: 1 file.\n")
    assert run("check", "--min-severity", "error", "--statistics").stdout == ""


def test_what_is_below_is_not_fixed(project: Path, run: Run) -> None:
    (project / "a.py").write_text("import torch\nx.half(); x.bfloat16()\n")
    (project / "amplint.toml").write_text('min-severity = "error"\n')
    assert run("check", "--fix").status == 1
    assert (project / "a.py").read_text() == "import torch\nx.to(torch.float16); x.bfloat16()\n"


def test_fixes_of_a_warning_wait_for_its_severity(project: Path) -> None:
    text = "import torch\n\nscaler = torch.cuda.amp.GradScaler()\n"
    (project / "a.py").write_text(text)
    options = ("check", "--fix", "--select", "AMP601")
    assert amplint(*options, "--min-severity", "error").status == 0
    assert (project / "a.py").read_text() == text
    assert amplint(*options).status == 0
    assert "torch.amp.GradScaler" in (project / "a.py").read_text()


def test_fingerprints_do_not_rest_on_the_threshold(project: Path, run: Run) -> None:
    (project / "a.py").write_text("x.double()\nx.half()\nx.double()\nx.half()\n")
    fingerprints = [
        {finding["location"]["row"]: finding["fingerprint"] for finding in json.loads(result.stdout)}
        for result in (
            run("check", "--output-format", "json", "--min-certainty", level) for level in ("likely", "proven")
        )
    ]
    assert len(fingerprints[1]) == 2
    assert fingerprints[1].items() < fingerprints[0].items()


def test_a_comment_silences_what_is_below_too(project: Path, run: Run) -> None:
    (project / "a.py").write_text("x.double()  # amplint: ignore[TOY102]\n")
    for level in ("possible", "proven"):
        assert run("check", "--min-certainty", level).status == 0


@pytest.mark.parametrize(
    ("keys", "arguments", "message"),
    [
        (
            "",
            ("--pedantic", "--min-certainty", "proven"),
            "--pedantic is --min-certainty possible: --min-certainty proven",
        ),
        (
            "",
            ("--min-certainty", "provn"),
            "Invalid value for '--min-certainty': 'provn' is not one of 'proven', 'likely'",
        ),
        (
            'min-certainty = "provn"',
            (),
            "'min-certainty' is one of proven, likely, possible, not 'provn' (did you mean",
        ),
        ('min-severity = "fatal"', (), "'min-severity' is one of error, warning, not 'fatal'"),
        ("min-severity = 1", (), "'min-severity' must be a string"),
        ('pedantic = true\nmin-certainty = "likely"', (), "'pedantic' means min-certainty = 'possible', and 'likely'"),
        ('pedantic = "yes"', (), "'pedantic' must be true or false"),
        ("min-certanty = 1", (), "unknown key 'min-certanty' (did you mean 'min-certainty'?)"),
    ],
)
def test_what_is_mistyped_is_one_line(
    project: Path, run: Run, keys: str, arguments: tuple[str, ...], message: str
) -> None:
    (project / "amplint.toml").write_text(keys)
    (project / "a.py").write_text(SOURCE)
    result = run("check", *arguments)
    assert (result.status, result.stdout) == (2, "")
    where = f"{project / 'amplint.toml'}: " if keys else ""
    assert result.stderr.startswith(f"amplint: error: {where}{message}")
    assert result.stderr.count("\n") == 1


def test_unsafe_fixes_by_configuration(project: Path, run: Run) -> None:
    for folder, key in (("lenient", "unsafe-fixes = true\n"), ("strict", "")):
        (project / folder).mkdir()
        (project / folder / "amplint.toml").write_text(key)
        (project / folder / "a.py").write_text("x.bfloat16()\n")
    assert (
        run("check").stderr
        == "Found 2 findings (2 errors) in 2 of 2 files; 1 fixable with --fix, 1 more with --unsafe-fixes.\n"
    )
    assert run("check", "--fix", "--no-unsafe-fixes").status == 1
    assert (project / "lenient" / "a.py").read_text() == "x.bfloat16()\n"
    assert run("check", "--fix").status == 1
    assert [(project / name / "a.py").read_text() for name in ("lenient", "strict")] == ["x\n", "x.bfloat16()\n"]
    assert run("check", "--fix", "--unsafe-fixes").status == 0
    assert run("check", "--no-unsafe-fixes").stderr == "amplint: error: --no-unsafe-fixes needs --fix or --diff\n"
