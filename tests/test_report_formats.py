"""What programs read of a run: each format by its schema, or by the parser of what consumes it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

import pytest
from conftest import ROOT, amplint
from junitparser import Error, Failure
from report_readers import commands, diagnostics, sarif, suites

from amplint.report import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Completed

    Run = Callable[..., Completed]

INCIDENTS = "fixtures/incidents"
HOSTILE = "ü <b>&\"'\n\x1b[31m %:,{0}[a](1).py"
"""A file's name with all that one of the formats has to escape."""
WIDE = 'name = "日本 𐐀"; x.double()\n'
"""A finding behind characters of two and of four bytes."""


@pytest.fixture
def incidents(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """The report on the incidents in a format, and their findings as JSON beside it."""
    monkeypatch.chdir(ROOT)
    return lambda output_format: amplint("check", "--output-format", output_format, INCIDENTS).stdout


# ---- SARIF --------------------------------------------------------------------------------------------------------


def path_of(artifact: dict[str, str], of_run: dict[str, Any]) -> Path:
    """The file that a location names, as a viewer resolves it."""
    base = of_run["originalUriBaseIds"][artifact["uriBaseId"]]["uri"] if "uriBaseId" in artifact else ""
    return Path(unquote(urlparse(base + artifact["uri"]).path))


def test_sarif_says_what_json_says(incidents: Callable[[str], str]) -> None:
    of_run, findings = sarif(incidents("sarif")), json.loads(incidents("json"))
    rules = of_run["tool"]["driver"]["rules"]
    assert len(of_run["results"]) == len(findings) > 5
    for result, finding in zip(of_run["results"], findings, strict=True):
        assert result["ruleId"] == rules[result["ruleIndex"]]["id"] == finding["code"]
        assert result["level"] == finding["severity"]
        (location,) = result["locations"]
        where = location["physicalLocation"]
        assert str(path_of(where["artifactLocation"], of_run)) == finding["filename"]
        assert where["artifactLocation"]["uriBaseId"] == "%SRCROOT%"
        region, end = where["region"], finding["end_location"]
        assert (region["startLine"], region["startColumn"]) == tuple(finding["location"].values())
        assert (region["endLine"], region["endColumn"]) == (end["row"], end["column"])
        line = Path(finding["filename"]).read_text().splitlines()[region["startLine"] - 1]
        assert region["snippet"]["text"] == line[region["startColumn"] - 1 : region["endColumn"] - 1]
        for key in ("certainty", "scenarios", "device"):
            assert result["properties"][key] == finding[key]
        assert result["partialFingerprints"] == {"amplint/v1": finding["fingerprint"]}
        related = result.get("relatedLocations", [])
        assert len(related) == len(finding["causes"]) + len(finding["also"])
        assert [place["message"]["text"] for place in related][: len(finding["causes"])] == [
            cause["message"] for cause in finding["causes"]
        ]
        linked = re.findall(r"(?<!\\)\]\((\d+)\)", result["message"]["text"])
        assert [int(number) for number in linked] == [place["id"] for place in related]
        assert len(result.get("fixes", [])) == (finding["fix"] is not None)
    assert of_run["columnKind"] == "unicodeCodePoints"
    assert of_run["invocations"] == [{"executionSuccessful": True, "toolExecutionNotifications": []}]


def test_sarif_says_what_its_rules_are_about(incidents: Callable[[str], str]) -> None:
    for rule in sarif(incidents("sarif"))["tool"]["driver"]["rules"]:
        assert rule["helpUri"].endswith(f"/{rule['id']}/")
        assert rule["shortDescription"]["text"].endswith(".")
        assert rule["fullDescription"]["text"].startswith("Reports ")
        assert "---" not in rule["fullDescription"]["text"]
        assert all(heading in rule["help"]["markdown"] for heading in ("Why it is bad", "Fix safety"))


def applied(document: dict[str, Any], text: str) -> str:
    """A text after the fix of a SARIF result, whose columns count characters."""
    lines = text.splitlines(keepends=True)

    def offset(row: int, column: int) -> int:
        return sum(map(len, lines[: row - 1])) + column - 1

    (change,) = document["fixes"][0]["artifactChanges"]
    for part in reversed(change["replacements"]):
        region = part["deletedRegion"]
        start, end = offset(region["startLine"], region["startColumn"]), offset(region["endLine"], region["endColumn"])
        text = text[:start] + part["insertedContent"]["text"] + text[end:]
    return text


FIXABLE = 'import os\n\n\ndef f(x):\n    "日本"; y = ("𐐀", x.half())\n    return y\n'
"""Code whose fix has two edits, one of them an import, in lines that are not ASCII."""


@pytest.fixture
def fixed(project: Path, run: Run) -> str:
    """What ``--fix`` makes of a.py; the file is left as it was."""
    (project / "a.py").write_text(FIXABLE, encoding="utf-8")
    assert run("check", "--fix", "a.py").status == 0
    after = (project / "a.py").read_text(encoding="utf-8")
    (project / "a.py").write_text(FIXABLE, encoding="utf-8")
    assert after != FIXABLE
    return after


def test_fixes_in_sarif_are_those_of_fix(fixed: str, run: Run) -> None:
    (result,) = sarif(run("check", "--output-format", "sarif", "a.py").stdout)["results"]
    assert applied(result, FIXABLE) == fixed
    assert result["fixes"][0]["properties"] == {"applicability": "safe"}


def test_sarif_of_what_went_wrong(project: Path, run: Run) -> None:
    (project / "a.py").write_text("x.half()\n")
    done = run("check", "--output-format", "sarif", "a.py", "gone.py")
    of_run = sarif(done.stdout)
    assert done.status == 2
    assert len(of_run["results"]) == 1
    assert of_run["invocations"] == [
        {
            "executionSuccessful": False,
            "toolExecutionNotifications": [
                {"level": "error", "message": {"text": "no such file or directory: gone.py"}}
            ],
        }
    ]


def test_sarif_of_a_file_outside(project: Path, tmp_path: Path, run: Run) -> None:
    other = tmp_path / "ö ther.py"
    other.write_text("x.half()\n")
    of_run = sarif(run("check", "--output-format", "sarif", "../ö ther.py").stdout)
    artifact = of_run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": other.as_uri()}
    assert path_of(artifact, of_run) == other


# ---- reviewdog ----------------------------------------------------------------------------------------------------


def suggested(diagnostic: dict[str, Any], data: bytes) -> bytes:
    """A file after a reviewer took the suggestion: lines replaced, their ends cut by bytes, as reviewdog does it."""
    (suggestion,) = diagnostic["suggestions"]
    start, end = suggestion["range"]["start"], suggestion["range"]["end"]
    lines = data.split(b"\n")
    head, tail = lines[start["line"] - 1][: start["column"] - 1], lines[end["line"] - 1][end["column"] - 1 :]
    new = head + suggestion["text"].encode() + tail
    return b"\n".join([*lines[: start["line"] - 1], new, *lines[end["line"] :]])


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_suggestions_are_the_fixes(project: Path, fixed: str, run: Run, mark: bytes) -> None:
    before = mark + FIXABLE.encode()
    (project / "a.py").write_bytes(before)
    (diagnostic,) = diagnostics(run("check", "--output-format", "rdjson", "a.py").stdout)
    assert suggested(diagnostic, before) == mark + fixed.encode()
    (project / "a.py").write_bytes(mark + b"x.bfloat16()\n")
    (diagnostic,) = diagnostics(run("check", "--output-format", "rdjson", "a.py").stdout)
    assert suggested(diagnostic, mark + b"x.bfloat16()\n") == mark + b"x\n"


def test_reviewdog_counts_bytes(project: Path, run: Run) -> None:
    (project / "a.py").write_text(WIDE, encoding="utf-8")
    (diagnostic,) = diagnostics(run("check", "--output-format", "rdjson").stdout)
    assert diagnostic["location"] == {
        "path": "a.py",
        "range": {"start": {"line": 1, "column": 23}, "end": {"line": 1, "column": 33}},
    }
    assert WIDE.encode()[22:32] == b"x.double()"
    assert diagnostic["severity"] == "WARNING"
    assert "suggestions" not in diagnostic


def test_reviewdog_of_the_incidents(incidents: Callable[[str], str]) -> None:
    found, findings = diagnostics(incidents("rdjson")), json.loads(incidents("json"))
    assert [one["code"]["value"] for one in found] == [finding["code"] for finding in findings]
    assert all(one["code"]["url"].endswith(f"/{one['code']['value']}/") for one in found)
    for one, finding in zip(found, findings, strict=True):
        related = one.get("related_locations", [])
        assert len(related) == len(finding["causes"]) + len(finding["also"])
        assert ("help: " in one["message"]) == (finding["fix"] is not None) == ("suggestions" in one)


# ---- GitHub -------------------------------------------------------------------------------------------------------


def test_github_commands(incidents: Callable[[str], str]) -> None:
    findings = json.loads(incidents("json"))
    for (name, properties, message), finding in zip(commands(incidents("github")), findings, strict=True):
        start, end = finding["location"], finding["end_location"]
        assert name == finding["severity"]
        assert str(ROOT / properties["file"]) == finding["filename"]
        assert (properties["line"], properties["col"]) == (str(start["row"]), str(start["column"]))
        assert (properties["endLine"], properties["endColumn"]) == (str(end["row"]), str(end["column"]))
        assert properties["title"] == f"amplint {finding['code']} {finding['name']}"
        first, *rest = message.split("\n")
        assert first == f"{finding['message']} [{', '.join(finding['scenarios'])}]"
        assert len(rest) == len(finding["causes"]) + len(finding["also"]) + (finding["fix"] is not None)


def test_github_gives_no_columns_across_lines(project: Path, run: Run) -> None:
    (project / "a.py").write_text("(x\n.half())\n")
    ((_, properties, _),) = commands(run("check", "--output-format", "github").stdout)
    assert {key: properties[key] for key in ("line", "endLine")} == {"line": "1", "endLine": "2"}
    assert not {"col", "endColumn"} & {*properties}


@pytest.mark.parametrize(("variable", "output_format"), [("GITHUB_WORKSPACE", "github"), ("CI_PROJECT_DIR", "gitlab")])
def test_files_are_named_from_the_repository(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch, variable: str, output_format: str
) -> None:
    def named() -> str:
        text = run("check", "--output-format", output_format).stdout
        return commands(text)[0][1]["file"] if output_format == "github" else json.loads(text)[0]["location"]["path"]

    (project / "a.py").write_text("x.half()\n")
    monkeypatch.delenv(variable, raising=False)
    assert named() == "a.py"
    monkeypatch.setenv(variable, str(project.parent))
    assert named() == "project/a.py"
    monkeypatch.setenv(variable, str(project / "elsewhere"))
    assert named() == "a.py"


# ---- GitLab -------------------------------------------------------------------------------------------------------


def test_gitlab_issues(incidents: Callable[[str], str]) -> None:
    """The fields that GitLab's documentation requires."""
    issues, findings = json.loads(incidents("gitlab")), json.loads(incidents("json"))
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)
    for issue, finding in zip(issues, findings, strict=True):
        assert issue["description"].startswith(f"{finding['code']} {finding['message']} [")
        assert issue["check_name"] == f"{finding['code']} {finding['name']}"
        assert issue["location"]["lines"] == {
            "begin": finding["location"]["row"],
            "end": finding["end_location"]["row"],
        }
        assert str(ROOT / issue["location"]["path"]) == finding["filename"]
        kind = (finding["severity"], finding["certainty"])
        assert issue["severity"] == {("error", "proven"): "critical", ("error", "likely"): "major"}.get(kind, "minor")


def test_gitlab_tells_equal_code_in_two_files_apart(project: Path, run: Run) -> None:
    for name in ("a.py", "b.py"):
        (project / name).write_text("x.half()\nx.half()\n")
    issues = json.loads(run("check", "--output-format", "gitlab").stdout)
    assert len({issue["fingerprint"] for issue in issues}) == 4
    (project / "a.py").write_text("\n\nx.half()\nx.half()\n")
    moved = json.loads(run("check", "--output-format", "gitlab").stdout)
    assert [issue["fingerprint"] for issue in moved] == [issue["fingerprint"] for issue in issues]


# ---- JUnit --------------------------------------------------------------------------------------------------------


def test_junit(project: Path, run: Run) -> None:
    (project / "a.py").write_text("x.half()\nx.double()\n")
    (project / "clean.py").write_text("")
    done = run("check", "--output-format", "junit", ".", "gone.py")
    found = suites(done.stdout)
    assert done.status == 2
    assert [*found] == ["a.py", "clean.py", "amplint"]
    half, double = found["a.py"]
    assert [case.name for case in (half, double)] == ["TOY101 toy-half 1:1", "TOY102 toy-double 2:1"]
    (failure,) = half.result
    assert isinstance(failure, Failure)
    assert failure.type == "error"
    assert failure.message.startswith("half() is called [autocast-fp16, ")
    assert "a.py:1:1: float32: .half() is called on it\nhelp: Name the dtype (safe fix: --fix)" in failure.text
    (clean,) = found["clean.py"]
    assert clean.is_passed
    (error,) = next(iter(found["amplint"])).result
    assert isinstance(error, Error)
    assert error.message == "no such file or directory: gone.py"


def test_a_file_that_failed_did_not_pass(project: Path, run: Run) -> None:
    (project / "a.py").write_text("x.boom()\n")
    found = suites(run("check", "--extend-select", "TOY103", "--output-format", "junit").stdout)
    assert [*found] == ["amplint"]


# ---- all of them --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("output_format", FORMATS)
def test_output_file_holds_what_stdout_does(project: Path, run: Run, output_format: str) -> None:
    (project / "a.py").write_text(WIDE + "x.half()\n", encoding="utf-8")
    shown = run("check", "--output-format", output_format, "a.py")
    kept = run("check", "--output-format", output_format, "--output-file", "report", "a.py")
    assert (kept.status, kept.stdout, kept.stderr) == (shown.status, "", shown.stderr) == (1, "", shown.stderr)
    assert (project / "report").read_text(encoding="utf-8") == shown.stdout != ""


@pytest.mark.parametrize("files", [{}, {"a.py": "x = 1\n"}])
def test_nothing_found(project: Path, run: Run, files: dict[str, str]) -> None:
    for name, text in files.items():
        (project / name).write_text(text)

    def clean(output_format: str) -> str:
        done = run("check", "--output-format", output_format)
        assert done.status == 0
        return done.stdout

    assert sarif(clean("sarif"))["results"] == []
    assert diagnostics(clean("rdjson")) == []
    assert json.loads(clean("gitlab")) == []
    assert [*suites(clean("junit"))] == [*files]
    assert clean("github") == clean("grouped") == clean("full") == ""


@pytest.mark.skipif("os.name == 'nt'", reason="Windows has no such names")
def test_names_are_escaped(project: Path, run: Run) -> None:
    (project / HOSTILE).write_text("x.half()\n")

    def shown(output_format: str) -> str:
        return run("check", "--output-format", output_format).stdout

    of_run = sarif(shown("sarif"))
    assert path_of(of_run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"], of_run) == (
        project / HOSTILE
    )
    ((_, properties, message),) = commands(shown("github"))
    assert properties["file"] == HOSTILE
    assert "\x1b" not in message
    assert diagnostics(shown("rdjson"))[0]["location"]["path"] == HOSTILE
    assert json.loads(shown("gitlab"))[0]["location"]["path"] == HOSTILE
    (suite,) = suites(shown("junit")).values()
    assert suite.name == HOSTILE.replace("\x1b", r"\x1b")
    name = HOSTILE.replace("\x1b", r"\x1b").replace("\n", r"\n")
    assert shown("concise").startswith(f"{name}:1:1: TOY101 ")
    assert shown("grouped").startswith(f"{name}:\n  1:1  TOY101 half() is called [")
    assert f" --> {name}:1:1\n" in shown("full")


@pytest.mark.parametrize("output_format", FORMATS)
def test_bytes_that_are_no_text(project: Path, run: Run, output_format: str) -> None:
    """A file that does not decode, from stdin, and one whose name does not."""
    done = run("check", "--output-format", output_format, "-", stdin=b'"\xff"\n')
    assert "AMP901" in done.stdout
    name = "\udcff.py"
    try:
        (project / name).write_text("x.half()\n")
    except (OSError, UnicodeEncodeError):
        pytest.skip("this file system has no such names")
    assert run("check", "--output-format", output_format, "--output-file", "report", name).status == 1
    assert (project / "report").read_text(encoding="utf-8")


def test_grouped(project: Path, run: Run) -> None:
    (project / "a.py").write_text("\n" * 9 + "x.double()\nif x:\n    x.half()\n")
    (project / "b.py").write_text("x.double()\n")
    scenarios = "[autocast-fp16, "
    lines = [line.split(scenarios)[0] for line in run("check", "--output-format", "grouped").stdout.split("\n")]
    assert lines == [
        "a.py:",
        "  10:1  TOY102 double() is called ",
        "  12:5  TOY101 half() is called ",
        "",
        "b.py:",
        "  1:1  TOY102 double() is called ",
        "",
        "",
    ]


def test_statistics_of_every_format(project: Path, run: Run) -> None:
    (project / "a.py").write_text("x.double()\nx.double()\n")
    for output_format in FORMATS:
        done = run("check", "--statistics", "--output-format", output_format)
        rows = [{"code": "TOY102", "name": "toy-double", "count": 2}]
        assert (
            (json.loads(done.stdout) == rows) if output_format == "json" else done.stdout == "2  TOY102  toy-double\n"
        )
