"""What each format says of findings that a run refutes, of fixes that are only shown, and of cells of a notebook."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from junitparser import Skipped
from report_readers import commands, diagnostics, sarif, suites

from amplint.finding import Applicability, Cause, Certainty, Edit, Finding, Fix, Severity
from amplint.report import Context, plain, render
from amplint.source import Location, Source, Span
from amplint.verify.proof import Proof
from amplint.verify.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Completed


@pytest.fixture
def source(project: Path) -> Source:
    source = Source(project / "model.py", b"import torch\ny = x.bfloat16()\nout.index_add_(0, idx, y)\n")
    source.path.write_bytes(source.data)
    return source


@pytest.fixture
def finding(source: Source) -> Finding:
    def span(row: int, start: int, end: int) -> Span:
        return Span(Location(row, start), Location(row, end))

    return Finding(
        "AMP105",
        "index-write",
        "index_add_ writes bfloat16 into float32",
        Severity.ERROR,
        Certainty.PROVEN,
        source.path,
        span(3, 1, 26),
        ("autocast-bf16", "fp16"),
        "cuda",
        (Cause(source.path, span(2, 5, 17), "bfloat16: cast here"),),
        Fix(Applicability.SAFE, "Cast the source", (Edit(span(3, 25, 25), ".to(out.dtype)"),)),
        fingerprint="0123456789abcdef",
    )


def report(output_format: str, findings: list[Finding], *, refuted: bool = False) -> str:
    """A report; ``refuted``: runs showed that what the findings claim does not happen."""
    proof = Proof(Verdict.NOT_REPRODUCED, refuted=True)
    proofs = {(finding.filename, finding.fingerprint): proof for finding in findings} if refuted else None
    return plain(render(output_format, findings, Context({}, proofs=proofs)))


def test_what_a_run_refutes_does_not_count(finding: Finding) -> None:
    (result,) = sarif(report("sarif", [finding], refuted=True))["results"]
    assert result["suppressions"][0]["status"] == "accepted"
    assert result["properties"]["verdict"] == "not-reproduced"
    ((name, _, message),) = commands(report("github", [finding], refuted=True))
    assert name == "notice"
    assert message.endswith("not counted")
    assert json.loads(report("gitlab", [finding], refuted=True))[0]["severity"] == "info"
    assert diagnostics(report("rdjson", [finding], refuted=True))[0]["severity"] == "INFO"
    (suite,) = suites(report("junit", [finding], refuted=True)).values()
    assert (suite.failures, suite.skipped) == (0, 1)
    assert isinstance(next(iter(suite)).result[0], Skipped)
    assert "(not-reproduced)" in report("grouped", [finding], refuted=True)


def test_what_is_shown_only_is_never_offered_to_be_applied(finding: Finding) -> None:
    assert finding.fix is not None
    display = replace(finding, fix=replace(finding.fix, applicability=Applicability.DISPLAY))
    assert "fixes" not in sarif(report("sarif", [display]))["results"][0]
    assert "suggestions" not in diagnostics(report("rdjson", [display]))[0]
    assert "fixes" in sarif(report("sarif", [finding]))["results"][0]
    assert "suggestions" in diagnostics(report("rdjson", [finding]))[0]


def test_a_place_in_a_cell_is_no_line_of_the_file(project: Path, run: Callable[..., Completed]) -> None:
    """Rows of a notebook's cell are told in words; nothing points to that row of the JSON, or edits it."""
    cells = [
        {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": [], "source": text}
        for text in ("import os\n", "y = 1\nz = x.half()\n")
    ]
    document = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    (project / "a.ipynb").write_text(json.dumps(document))

    def shown(output_format: str) -> str:
        return run("check", "--output-format", output_format).stdout

    (result,) = sarif(shown("sarif"))["results"]
    assert all("region" not in at["physicalLocation"] for at in [*result["locations"], *result["relatedLocations"]])
    assert "fixes" not in result
    assert result["message"]["text"].startswith("cell 2:2:5: half() is called ")
    assert result["relatedLocations"][0]["message"]["text"].startswith("cell 2:2:5: float32: ")
    ((_, properties, message),) = commands(shown("github"))
    assert (properties["line"], "col" in properties) == ("1", False)
    assert message.startswith("cell 2:2:5: half() is called ")
    (issue,) = json.loads(shown("gitlab"))
    assert issue["location"]["lines"] == {"begin": 1, "end": 1}
    assert issue["description"].startswith("cell 2:2:5: TOY101 ")
    (diagnostic,) = diagnostics(shown("rdjson"))
    assert diagnostic["location"] == diagnostic["related_locations"][0]["location"] == {"path": "a.ipynb"}
    assert diagnostic["message"].startswith("cell 2:2:5: half() is called ")
    assert "suggestions" not in diagnostic
    assert shown("concise").startswith("a.ipynb:cell 2:2:5: TOY101 half() is called ")
    assert shown("grouped").startswith("a.ipynb:\n  cell 2:2:5  TOY101 half() is called ")
    assert next(iter(suites(shown("junit"))["a.ipynb"])).name == "TOY101 toy-half cell 2:2:5"
    assert shown("full").split("(shown only)\n")[1] == (
        " --> a.ipynb:cell 1\n"
        "1 | import os\n"
        "2 + from torch import float16\n"
        " --> a.ipynb:cell 2\n"
        "1 | y = 1\n"
        "2 - z = x.half()\n"
        "2 + z = x.to(float16)\n"
        "\n"
    )


def test_how_a_fix_is_applied(finding: Finding, source: Source) -> None:
    """What a configuration lets ``--fix`` do alone needs no other option."""
    assert finding.fix is not None
    unsafe = replace(finding, fix=replace(finding.fix, applicability=Applicability.UNSAFE))
    for output_format in ("full", "github", "rdjson"):
        text = plain(render(output_format, [unsafe], Context({})))
        assert "Cast the source (unsafe fix: --fix --unsafe-fixes)" in text
        text = plain(render(output_format, [unsafe], Context({}, unsafe_in=frozenset({source.path}))))
        assert "Cast the source (unsafe fix: --fix)" in text


def test_nothing_in_a_sarif_message_reads_as_a_link_or_placeholder(finding: Finding) -> None:
    odd = replace(finding, message="`w[0](1)` in {0}", causes=(replace(finding.causes[0], message="x[1](2) \\"),))
    (result,) = sarif(report("sarif", [odd]))["results"]
    assert result["message"]["text"] == (r"`w\[0\](1)` in {{0}} \[autocast-bf16, fp16\]. Causes: [x\[1\](2) \\](1).")
