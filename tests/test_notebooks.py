"""``amplint check`` on notebooks: found in cells, fixed in their sources, and nothing else touched."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from difflib import ndiff
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Completed, amplint
from notebooks import code, markdown, notebook, sources

Run = Callable[..., Completed]

ROWS = """\
def rows(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(16, 8, device=x.device)
    out.index_add_(0, index, x @ x.t())
    return out"""
CELLS = (
    markdown("# Training\n"),
    "%matplotlib inline\nimport torch\nmodel = torch.nn.Linear(8, 8).cuda()\nfiles = !ls",
    ROWS,
    "%%bash\nls -l | (",
    '%%time\no = torch.zeros(16, 8, device="cuda")\nwith torch.autocast("cuda"):\n    y = model(torch.ones(2, 8))\n',
    "%time o.index_add_(0, torch.arange(2), y)\nmodel?",
)


def found(*arguments: str) -> list[dict[str, Any]]:
    """What ``check`` finds, as JSON."""
    return json.loads(amplint("check", "--output-format", "json", *arguments).stdout)  # type: ignore[no-any-return]


def place(entry: dict[str, Any]) -> tuple[int, int, int]:
    return (entry["cell"], entry["location"]["row"], entry["location"]["column"])


def test_findings_lie_in_cells_and_earlier_cells_are_known_in_later_ones(project: Path) -> None:
    (project / "train.ipynb").write_text(notebook(*CELLS))
    first, second = found()
    assert (first["code"], second["code"]) == ("AMP105", "AMP105")
    assert (place(first), place(second)) == ((3, 3, 5), (6, 1, 7))
    assert second["end_location"] == {"row": 1, "column": 42}
    assert [place(cause) for cause in second["causes"]] == [(5, 2, 5), (5, 4, 9)]
    assert all(cause["filename"] == str(project / "train.ipynb") for cause in second["causes"])
    [edit] = second["fix"]["edits"]
    assert (place(edit), edit["content"]) == ((6, 1, 41), ".to(o.dtype)")


def test_text_formats_name_the_cell_and_show_its_source(project: Path) -> None:
    (project / "train.ipynb").write_text(notebook(*CELLS))
    concise = amplint("check", "--output-format", "concise").stdout.splitlines()
    assert [line.split(" ", 3)[:3] for line in concise] == [
        ["train.ipynb:cell", "3:3:5:", "AMP105"],
        ["train.ipynb:cell", "6:1:7:", "AMP105"],
    ]
    full = amplint("check").stdout
    assert " --> train.ipynb:cell 6:1:7\n" in full
    assert "1 | %time o.index_add_(0, torch.arange(2), y)\n  |       ^^^^" in full
    assert " --> train.ipynb:cell 5:2:5\n" in full
    assert "1 - %time o.index_add_(0, torch.arange(2), y)\n" in full
    assert "1 + %time o.index_add_(0, torch.arange(2), y.to(o.dtype))\n" in full


@pytest.mark.parametrize("style", [{}, {"indent": 2, "ensure_ascii": True}, {"indent": None}])
@pytest.mark.parametrize("as_list", [True, False])
def test_a_fix_changes_the_lines_that_it_fixes(project: Path, style: dict[str, Any], as_list: bool) -> None:
    path = project / "train.ipynb"
    cells = [cell if isinstance(cell, dict) else code(cell, as_list=as_list) for cell in CELLS]
    before = notebook(*cells, **style).removesuffix("\n")
    path.write_text(before)
    result = amplint("check", "--fix")
    assert (result.status, result.stdout) == (0, "")
    assert "Fixed 2 findings in 1 file." in result.stderr
    after = path.read_text()
    assert after == before.replace("index, x @ x.t())", "index, (x @ x.t()).to(out.dtype))").replace(
        "torch.arange(2), y)", "torch.arange(2), y.to(o.dtype))"
    )
    if as_list and style.get("indent", 1) is not None:
        changed = [line for line in ndiff(before.split("\n"), after.split("\n")) if line.startswith("- ")]
        assert len(changed) == 2
    assert amplint("check", "--fix").status == 0
    assert path.read_text() == after


def test_the_diff_is_one_for_each_cell(project: Path) -> None:
    (project / "train.ipynb").write_text(notebook(*CELLS))
    result = amplint("check", "--diff")
    assert result.status == 1
    assert result.stdout == (
        "--- a/train.ipynb:cell 3\n"
        "+++ b/train.ipynb:cell 3\n"
        "@@ -1,4 +1,4 @@\n"
        " def rows(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:\n"
        "     out = torch.zeros(16, 8, device=x.device)\n"
        "-    out.index_add_(0, index, x @ x.t())\n"
        "+    out.index_add_(0, index, (x @ x.t()).to(out.dtype))\n"
        "     return out\n"
        "--- a/train.ipynb:cell 6\n"
        "+++ b/train.ipynb:cell 6\n"
        "@@ -1,2 +1,2 @@\n"
        "-%time o.index_add_(0, torch.arange(2), y)\n"
        "+%time o.index_add_(0, torch.arange(2), y.to(o.dtype))\n"
        " model?\n"
    )
    assert (project / "train.ipynb").read_text() == notebook(*CELLS)


def test_a_notebook_on_stdin_is_fixed_to_stdout(project: Path, run: Run) -> None:
    text = notebook(markdown("# é\n"), "import torch\n%time x.half()\nx.double()")
    result = run("check", "--fix", "--stdin-filename", "a.ipynb", "-", stdin=text.encode())
    assert result.stdout == text.replace("x.half()", "x.to(torch.float16)")
    assert "a.ipynb:cell 2:3:1" in result.stderr
    assert "x.double()" in result.stderr
    assert result.status == 1


def test_a_fix_of_two_cells_is_shown_and_not_applied(project: Path, run: Run) -> None:
    text = notebook("import os", "x.half()")
    (project / "a.ipynb").write_text(text)
    result = run("check", "--fix", "--select", "TOY101", "--output-format", "json")
    [finding] = json.loads(result.stdout)
    assert finding["fix"]["applicability"] == "display"
    assert finding["fix"]["message"] == "Name the dtype; by hand, since it changes cells 1 and 2"
    assert [(edit["cell"], edit["location"]["row"], edit["content"]) for edit in finding["fix"]["edits"]] == [
        (1, 1, "\nfrom torch import float16"),
        (2, 1, "x.to(float16)"),
    ]
    assert (project / "a.ipynb").read_text() == text
    shown = run("check", "--select", "TOY101").stdout
    assert (
        " --> a.ipynb:cell 1\n1 | import os\n2 + from torch import float16\n --> a.ipynb:cell 2\n1 - x.half()\n"
        in shown
    )


def test_an_import_that_a_fix_orphans_in_another_cell_stays(project: Path) -> None:
    first = "import torch\nfrom torch.cuda.amp import autocast"
    (project / "a.ipynb").write_text(notebook(first, "with autocast():\n    print(1)"))
    (project / "b.ipynb").write_text(notebook(f"{first}\nwith autocast():\n    print(1)"))
    assert amplint("check", "--fix").status == 0
    with_autocast = 'with torch.amp.autocast("cuda", dtype=torch.float16):\n    print(1)'
    assert sources((project / "a.ipynb").read_text()) == [first, with_autocast]
    assert sources((project / "b.ipynb").read_text()) == [f"import torch\n{with_autocast}"]


def test_one_cause_is_told_once_in_each_cell(project: Path) -> None:
    write = "o.index_add_(0, torch.arange(2), y)"
    (project / "a.ipynb").write_text(notebook(*CELLS[:2], CELLS[4], f"{write}\n{write}", write))
    first, second = found()
    assert (place(first), [place(also) for also in first["also"]]) == ((4, 1, 1), [(4, 2, 1)])
    assert (place(second), second["also"]) == ((5, 1, 1), [])


def test_a_cell_that_is_no_python_is_told_and_the_rest_is_checked(project: Path) -> None:
    (project / "a.ipynb").write_text(notebook("import torch", "x = (1,\n  2))", markdown("a"), ROWS, "{{ name }}"))
    refused, hazard = found()
    assert (refused["code"], place(refused)) == ("AMP901", (2, 2, 5))
    assert "so the cell was not checked" in refused["message"]
    assert (hazard["code"], place(hazard)) == ("AMP105", (4, 3, 5))
    assert [entry["code"] for entry in found("--ignore", "AMP901")] == ["AMP105"]


def test_equal_cells_that_are_no_python_have_fingerprints_of_their_own(project: Path) -> None:
    (project / "a.ipynb").write_text(notebook("x = (", "x = ("))
    assert len({entry["fingerprint"] for entry in found()}) == 2


def test_fingerprints_do_not_rest_on_cells(project: Path) -> None:
    (project / "a.ipynb").write_text(notebook(*CELLS))
    (project / "b.ipynb").write_text(notebook(CELLS[1], markdown("new"), "!ls", *CELLS[2:]))
    prints = [(Path(entry["filename"]).name, entry["fingerprint"]) for entry in found()]
    assert [p for name, p in prints if name == "a.ipynb"] == [p for name, p in prints if name == "b.ipynb"]


@pytest.mark.parametrize("comment", ["# amplint: ignore[AMP105]", "# noqa: AMP105", "# amplint: ignore"])
def test_comments_silence_findings_in_their_cell(project: Path, comment: str) -> None:
    silenced = ROWS.replace("x.t())", f"x.t())  {comment}")
    (project / "a.ipynb").write_text(notebook("import torch", silenced, ROWS.replace("rows", "more")))
    assert [place(entry) for entry in found()] == [(3, 3, 5)]


def test_a_comment_at_the_head_of_the_first_cell_silences_the_notebook(project: Path) -> None:
    (project / "a.ipynb").write_text(notebook(f"%load_ext x\n# amplint: ignore-file\nimport torch\n{ROWS}", ROWS))
    assert found() == []


SCORES = """\
class Scores(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.p = torch.nn.Linear(8, 8)

    def forward(self, x):
        h = self.p(x)
        return torch.matmul(h.float(), h.float().t())
"""


def test_a_notebook_that_opens_autocast_asks_for_low_precision(project: Path) -> None:
    (project / "pyproject.toml").touch()
    (project / "plain.py").write_text("import torch\n")
    used = 'with torch.autocast("cuda"):\n    Scores()(torch.ones(2, 8))'
    (project / "a.ipynb").write_text(notebook("import torch", SCORES, used))
    assert [entry["code"] for entry in found()] == ["AMP102"]


R = {"kernelspec": {"language": "R", "name": "ir"}}


def test_a_notebook_in_another_language_is_passed_over_with_the_reason(project: Path) -> None:
    (project / "r.ipynb").write_text(notebook("x <- 1", metadata=R))
    result = amplint("check")
    assert (result.status, result.stdout) == (0, "")
    assert result.stderr == "No Python files found.\n1 file was passed over: 1 with a kernel for R.\n"
    (project / "a.py").write_text("x = 1\n")
    assert amplint("check").stderr.startswith("All checks passed: 1 file.\n1 file was passed over")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty, and no notebook"),
        ("{\n <<<<<<< HEAD", "it is not JSON (line 2, column 2: Expecting value)"),
        ('{"cells": [{"cell_type": "code" 1}]}', "it is not JSON (line 1, column 33: Expecting ',')"),
        ('{"cells": []} x', "it is not JSON (line 1, column 15: Extra data)"),
        ("[" * 100_000, "its JSON is nested too deeply"),
        ("[]", "it is JSON, but no notebook"),
        ("{}", "it is JSON without cells, and no notebook"),
        ('{"cells": {}}', "it is JSON without cells, and no notebook"),
        ('{"cells": [1]}', "its cell 1 is no JSON object"),
        ('{"cells": [{"cell_type": "raw"}, {"cell_type": "code"}]}', "its cell 2 has no source"),
        ('{"cells": [{"cell_type": "code", "source": [1]}]}', "its cell 1 has no source"),
        (
            '{"nbformat": 3, "worksheets": [{"cells": []}]}',
            "it is in notebook format 3: open and save it in Jupyter, or run jupyter nbconvert --to notebook --inplace "
            "on it",
        ),
    ],
)
def test_a_file_that_is_no_notebook_is_one_line_and_the_others_are_reported(project: Path, text: str, why: str) -> None:
    (project / "bad.ipynb").write_text(text)
    (project / "good.ipynb").write_text(notebook("import torch", ROWS))
    result = amplint("check", "--output-format", "json", "--fix")
    assert result.status == 2
    assert result.stderr.splitlines()[0] == f"amplint: error: cannot check {project / 'bad.ipynb'}: {why}"
    assert len([line for line in result.stderr.splitlines() if "error:" in line]) == 1
    assert "Fixed 1 finding in 1 file." in result.stderr
    assert (project / "bad.ipynb").read_text() == text


def test_a_notebook_that_is_not_utf_8_is_said_so(project: Path) -> None:
    (project / "a.ipynb").write_bytes(b'{"cells": "\xff"}')
    assert "a.ipynb: it is not UTF-8\n" in amplint("check").stderr


def test_a_notebook_without_metadata_or_cells_to_check_is_clean(project: Path) -> None:
    (project / "a.ipynb").write_text('\ufeff{"cells": [{"cell_type": "code", "source": []}]}', encoding="utf-8")
    (project / "b.ipynb").write_text('{"cells": [], "nbformat": 4, "nbformat_minor": NaN}')
    result = amplint("check", "--output-format", "json")
    assert (result.status, result.stdout) == (0, "[]\n")


def test_large_outputs_do_not_matter(project: Path) -> None:
    cell = code(ROWS)
    cell["outputs"] = [{"output_type": "display_data", "data": {"image/png": "A" * 30_000_000}, "metadata": {}}]
    text = notebook("import torch", cell)
    (project / "a.ipynb").write_text(text)
    assert amplint("check", "--fix").status == 0
    assert len((project / "a.ipynb").read_text()) == len(text) + len("().to(out.dtype)")


@pytest.mark.parametrize("command", [("dtypes", "--scenario", "bf16"), ("verify",)])
def test_what_reads_python_source_refuses_a_notebook(project: Path, command: tuple[str, ...]) -> None:
    (project / "a.ipynb").write_text(notebook("x = 1"))
    result = amplint(*command, "a.ipynb")
    assert (result.status, result.stdout) == (2, "")
    assert "a.ipynb is a notebook: only check reads notebooks, other commands Python source" in result.stderr


def test_a_line_that_a_message_names_is_one_of_the_cell(project: Path) -> None:
    def messages(path: Path) -> list[str]:
        return [entry["message"] for entry in found("--pedantic", str(path))]

    text = (ROOT / "fixtures" / "rules" / "AMP104" / "bad_input_cast_for_another_layer.py").read_text()
    (project / "a.py").write_text(text)
    (project / "a.ipynb").write_text(notebook("x = 1\n\n", text))
    named = messages(project / "a.py")
    assert any(" line " in message for message in named)
    assert messages(project / "a.ipynb") == named


EXAMPLES = sorted((ROOT / "fixtures" / "rules").glob("*/bad_*.py"))


def cut(text: str) -> list[str]:
    """A program as cells, of two statements each."""
    lines = text.splitlines(True)
    body = ast.parse(text).body[1:]
    starts = [min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))]) for node in body]
    borders = [1, *starts[::2], len(lines) + 1]
    return ["".join(lines[first - 1 : last - 1]) for first, last in pairwise(borders)]


def test_examples_of_rules_are_found_in_notebooks_as_in_files(project: Path) -> None:
    for example in EXAMPLES[::8]:
        name = f"{example.parent.name}_{example.stem}"
        (project / f"{name}.py").write_text(example.read_text())
        (project / f"{name}.ipynb").write_text(notebook(*cut(example.read_text())))
    told: dict[str, set[object]] = {".py": set(), ".ipynb": set()}
    for entry in found("--pedantic", "--extend-select", "ALL"):
        path = Path(entry["filename"])
        cells = cut((project / f"{path.stem}.py").read_text())
        above = sum(cell.count("\n") for cell in cells[: (entry["cell"] or 1) - 1])
        row = entry["location"]["row"] + (above if path.suffix == ".ipynb" else 0)
        told[path.suffix].add((path.stem, entry["code"], row, entry["location"]["column"], entry["fingerprint"]))
    assert told[".py"] == told[".ipynb"]
    assert len(told[".py"]) > 15


def test_verify_says_that_it_runs_no_notebook(project: Path) -> None:
    (project / "a.ipynb").write_text(notebook("import torch", ROWS))
    result = amplint("check", "--verify", "--output-format", "json")
    assert "amplint: 1 notebook not run: --verify runs Python files\n" in result.stderr
    assert [entry["verdict"] for entry in json.loads(result.stdout)] == [None]
    assert result.status == 1
