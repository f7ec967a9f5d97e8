"""``amplint dtypes``: what it prints for people and programs, through the real command."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from conftest import ROOT, amplint

from amplint.annotate.failing import Failing
from amplint.annotate.reads import first_reads
from amplint.annotate.rows import file_dtypes
from amplint.annotate.text import render
from amplint.infer.lattice.dtypes import NAMES
from amplint.infer.lattice.scenarios import CONTROL, SCENARIOS, find_scenario, scenario_names
from amplint.report import plain
from amplint.source import Location, Source, Span

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (ROOT / "docs" / "dtypes.md").read_text(encoding="utf-8")
FIXTURES = sorted(str(path) for path in (ROOT / "fixtures" / "incidents").rglob("*.py"))


GOLDEN = """\
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))  # self.weight: float32

    def forward(self, x: torch.Tensor) -> torch.Tensor:              # x: float32
        h = x.float()                                                # h: float32
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)  # h: float32
        return self.weight * h.to(x.dtype)


class Block(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.norm = RMSNorm(dim)
        self.up = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor, steps: torch.LongTensor):  # x: float32; steps: int64
        h = self.up(self.norm(x))                                 # h: float32 -> bfloat16 (autocast)
        gate, rest = h.softmax(-1), h                             # gate: bfloat16 -> float32 (autocast); rest: bfloat16
        left, right = gate.chunk(2, dim=-1)                       # left, right: float32
        angles = steps.float() * 0.5                              # angles: int64 -> float32
        angles += rest                                            # angles: float32, bfloat16 -> float32

        with torch.autocast("cuda", enabled=False):
            total = h.float().sum()      # total: bfloat16 -> float32
            h[:, 0] = left[:, 0]         # h[...]: float32 -> bfloat16
        lost = torch.ops.mine.kernel(h)  # lost: ?
        return x + self.up(h * gate), lost, total, right[..., None].to(torch.float16).transpose(-1, -2)  # *: bfloat16, float32 -> float32; up(): float32 -> bfloat16 (autocast); +: float32, bfloat16 -> float32; .to(): float32 -> float16
"""  # noqa: E501


KNOWN = "amplint: autocast-bf16: the dtype is known of 47 of 49 expressions that may be tensors\n"


def without_notes(text: str) -> str:
    return "".join(re.sub(r" *  # .*", "", line) + "\n" for line in text.splitlines())


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def document(*arguments: str) -> dict[str, Any]:
    done = amplint("dtypes", "--output-format", "json", *arguments)
    assert done.status == 0, done.stderr
    made: dict[str, Any] = json.loads(done.stdout)
    return made


def dtypes_by_text(path: Path, *arguments: str) -> dict[str, Any]:
    """The last dtype of each expression, by its source."""
    (file,) = document(str(path), *arguments)["files"]
    lines = path.read_text(encoding="utf-8").splitlines()
    return {
        lines[row["location"]["row"] - 1][row["location"]["column"] - 1 : row["end_location"]["column"] - 1]: row[
            "dtype"
        ]
        for row in file["expressions"]
    }


def test_text(project: Path) -> None:
    write(project, "block.py", without_notes(GOLDEN))
    done = amplint("dtypes", "block.py", "--scenario", "bf16-mixed")
    assert (done.status, done.stderr) == (0, KNOWN)
    assert done.stdout == GOLDEN


def test_text_of_another_scenario_and_device(project: Path) -> None:
    write(project, "block.py", without_notes(GOLDEN))
    true = amplint("dtypes", "block.py", "--scenario", "bf16-true").stdout
    assert re.search(r"h = x\.float\(\) +# h: bfloat16 -> float32\n", true)
    assert re.search(r"keepdim=True\) \+ 1e-6\) +# h: float32\n", true)
    assert re.search(r"return self\.weight \* h\.to\(x\.dtype\) +# \.to\(\): float32 -> bfloat16\n", true)
    assert "(autocast)" not in true
    assert "h.softmax(-1), h  # gate" not in true
    assert re.search(r"= h\.softmax\(-1\), h +# gate, rest: bfloat16\n", true)


def test_several_files_have_headers(project: Path) -> None:
    write(project, "a.py", "x = 1\n")
    (project / "sub").mkdir()
    write(project / "sub", "b.py", "import torch\n\n\ndef f():\n    return torch.ones(2).half()\n")
    done = amplint("dtypes", ".", "--scenario", "fp32", "--device", "cpu")
    assert done.status == 0
    assert done.stdout == (
        "# a.py: fp32, device cpu\nx = 1\n\n# sub/b.py: fp32, device cpu\nimport torch\n\n\ndef f():\n"
        "    return torch.ones(2).half()  # .half(): float32 -> float16\n\n"
    )


def test_text_is_the_source_line_by_line(project: Path) -> None:
    """Whatever the source is like: tabs, line endings, a byte order mark, wide characters, several lines a call."""
    text = (
        "\ufeffimport torch\r\ndef f(a: torch.Tensor):\r\n\tz = a.half()\r\n\tif a is not None:\r\n"
        "\t\té = torch.cat((\r\n\t\t\ta.half(),  # 字\r\n\r\n\t\t\tz\r\n\t\t), dim=0)\r\n"
        "\treturn f'{a.half()}' '\x1b[31m', é\r\n"
    )
    (project / "odd.py").write_bytes(text.encode())
    done = amplint("dtypes", "odd.py", "--scenario", "bf16")
    shown = done.stdout.split("\n")[:-1]
    assert [re.sub(r" *  # [^字]*$", "", line) for line in shown] == [
        line.replace("\t", "    ").replace("\x1b", "?") for line in text.removeprefix("\ufeff").split("\r\n")[:-1]
    ]
    assert shown[1].endswith("  # a: bfloat16")
    assert shown[2] == "    z = a.half()             # z: bfloat16 -> float16"
    assert shown[4].endswith("  # é: float16")
    assert shown[5].endswith("a.half(),  # 字  # .half(): bfloat16 -> float16")


def test_colours_name_the_dtype(project: Path) -> None:
    source = Source(project / "m.py", b"def f(x: torch.Tensor):\n    h = x.float()\n    return x.bfloat16()\n")
    source = Source(source.path, b"import torch\n" + source.data)
    scenario = find_scenario("bf16")
    assert scenario is not None
    file = file_dtypes(source, scenarios=(CONTROL, scenario), device="cuda", torch_version=(2, 13))
    lines = list(render(file, 1))
    assert lines[1][-1] == ("x: bfloat16", "yellow")
    assert lines[2][-1] == ("h: bfloat16 -> float32", "bold cyan")
    assert lines[3] == [("    return x.bfloat16()", "")]


def test_json_is_the_contracts(project: Path) -> None:
    made = document(*FIXTURES, "--scenario", "16-mixed", "--device", "cpu")
    assert list(made) == ["scenario", "device", "files"]
    assert (made["scenario"], made["device"]) == ("autocast-fp16", "cpu")
    assert [file["filename"] for file in made["files"]] == FIXTURES
    kinds: set[type] = set()
    for file in made["files"]:
        assert list(file) == ["filename", "expressions"]
        assert os.path.isabs(file["filename"])
        with open(file["filename"], "rb") as opened:
            source = Source(file["filename"], opened.read())
        nodes = [n for n in ast.walk(source.tree) if isinstance(n, (ast.expr, ast.AugAssign))]
        spans = {source.span(node) for node in nodes}
        places = []
        for row in file["expressions"]:
            assert list(row) == ["location", "end_location", "dtype", "origin"]
            start, end = row["location"], row["end_location"]
            assert list(start) == list(end) == ["row", "column"]
            places.append((start["row"], start["column"], end["row"], end["column"]))
            dtype = row["dtype"]
            kinds.add(type(dtype))
            if isinstance(dtype, list):
                assert dtype == sorted(set(dtype))
                assert len(dtype) > 1
            assert dtype is None or set(dtype if isinstance(dtype, list) else [dtype]) <= set(NAMES)
            if dtype is None:
                assert row["origin"] is None
            elif row["origin"] is not None:
                assert list(row["origin"]) == ["row", "column"]
        assert places == sorted(places)
        assert set(places) <= {(s.start.row, s.start.column, s.end.row, s.end.column) for s in spans}
    assert kinds == {str, list, type(None)}
    assert document(*FIXTURES, "--scenario", "16-mixed", "--device", "cpu") == made


def test_json_values(project: Path) -> None:
    path = write(project, "block.py", without_notes(GOLDEN))
    mixed = dtypes_by_text(path, "--scenario", "bf16-mixed")
    assert mixed["h.softmax(-1)"] == "float32"
    assert mixed["self.up(self.norm(x))"] == "bfloat16"
    assert mixed["torch.ops.mine.kernel(h)"] is None
    assert mixed["angles += rest"] == "float32"
    assert dtypes_by_text(path, "--scenario", "bf16")["h.softmax(-1)"] == "bfloat16"
    assert dtypes_by_text(path, "--scenario", "fp32")["self.up(self.norm(x))"] == "float32"


def test_json_of_no_file(project: Path) -> None:
    assert document(".", "--scenario", "bf16") == {"scenario": "bf16", "device": "cuda", "files": []}


def test_an_origin_in_another_file_names_it(project: Path) -> None:
    other = write(
        project, "makers.py", "import torch\n\n\ndef table(n):\n    return torch.zeros(n, dtype=torch.float64)\n"
    )
    user = write(
        project, "user.py", "import torch\nfrom makers import table\n\n\ndef f(n):\n    return torch.relu(table(n))\n"
    )
    (file,) = document(str(user), "--scenario", "bf16")["files"]
    called = next(row for row in file["expressions"] if row["location"]["column"] == 23)
    assert called["dtype"] == "float64"
    assert called["origin"] == {"filename": str(other), "row": 5, "column": 12}


def test_an_origin_is_where_the_dtype_was_decided(project: Path) -> None:
    path = write(
        project, "m.py", "import torch\n\n\ndef f(x: torch.Tensor):\n    y = x.half()\n    return y.reshape(-1).sum()\n"
    )
    (file,) = document(str(path), "--scenario", "bf16")["files"]
    (summed,) = (row for row in file["expressions"] if row["end_location"] == {"row": 6, "column": 31})
    assert (summed["dtype"], summed["origin"]) == ("float16", {"row": 5, "column": 9})
    (x,) = (row for row in file["expressions"] if row["end_location"] == {"row": 5, "column": 10})
    assert (x["dtype"], x["origin"]) == ("bfloat16", {"row": 4, "column": 7})


def test_what_must_agree_with_a_parameter_has_its_dtype_whatever_else_it_may_be(project: Path) -> None:
    path = write(
        project,
        "m.py",
        "import torch\nfrom torch import nn\nfrom elsewhere import change, wanted\n\n\nclass M(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.layer = nn.Linear(4, 4)\n"
        "        self.weight = nn.Parameter(torch.ones(4, 4))\n\n    def forward(self, x: torch.Tensor):\n"
        "        if wanted():\n            x = change(x)\n"
        "        return torch.relu(x), self.layer(x), torch.mm(x, self.weight)\n",
    )
    found = dtypes_by_text(path, "--scenario", "bf16")
    assert found["torch.relu(x)"] is None, "nothing is known of what change() gives"
    assert found["self.layer(x)"] == found["torch.mm(x, self.weight)"] == "bfloat16"


def test_output_file(project: Path) -> None:
    write(project, "block.py", without_notes(GOLDEN))
    done = amplint("dtypes", "block.py", "--scenario", "autocast-bf16", "--output-file", "out.txt")
    assert (done.status, done.stdout, done.stderr) == (0, "", KNOWN)
    assert (project / "out.txt").read_text(encoding="utf-8") == GOLDEN
    done = amplint("dtypes", "block.py", "--scenario", "bf16", "--output-file", "no/such/out.txt")
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr.startswith("amplint: error: cannot write no/such/out.txt: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], f"dtypes shows one scenario: give --scenario NAME; known: {', '.join(scenario_names())}"),
        (["--scenario", "fp16,bf16"], "dtypes shows one scenario: give --scenario NAME; known: "),
        (["--scenario", "autocast-bf61"], "unknown scenario 'autocast-bf61' (did you mean 'autocast-bf16'?)"),
        (["--scenario", "bf16", "--device", "cuad"], "unknown device 'cuad' (did you mean 'cuda'?)"),
        (["--scenario", "bf16", "--torch-version", "new"], "torch version 'new' is not of the form X.Y"),
    ],
)
def test_wrong_usage(project: Path, arguments: list[str], message: str) -> None:
    write(project, "m.py", "x = 1\n")
    done = amplint("dtypes", "m.py", *arguments)
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr.startswith(f"amplint: error: {message}")


def test_the_scenario_is_not_taken_from_the_configuration(project: Path) -> None:
    write(project, "amplint.toml", 'scenarios = ["bf16"]\ndevice = "cpu"\n')
    write(project, "m.py", "x = 1\n")
    assert amplint("dtypes", "m.py").status == 2
    assert document("m.py", "--scenario", "fp16")["device"] == "cpu"


def test_the_other_files_are_shown(project: Path) -> None:
    write(project, "a.py", "def f(:\n")
    write(project, "b.py", "x = 1\n")
    (project / "c.py").write_bytes(b"\n\n\n'\xff'\n")
    done = amplint("dtypes", "a.py", "b.py", "c.py", "missing.py", "--scenario", "bf16")
    assert done.status == 2
    assert done.stdout == "# b.py: bf16, device cuda\nx = 1\n\n"
    assert done.stderr.splitlines() == [
        "amplint: error: no such file or directory: missing.py",
        "amplint: error: a.py:1:7: cannot be parsed: invalid syntax",
        "amplint: error: c.py:4:1: cannot be parsed: not valid utf-8: invalid start byte",
    ]
    made = amplint("dtypes", "a.py", "b.py", "--scenario", "bf16", "--output-format", "json")
    assert made.status == 2
    assert [file["filename"] for file in json.loads(made.stdout)["files"]] == [str(project / "b.py")]


def test_what_inference_did_not_expect_is_one_line(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, "a.py", "x = 1\n")
    monkeypatch.setattr("amplint.cli.dtypes.file_dtypes", lambda *_, **__: {}["of two\nlines"])
    done = amplint("dtypes", "a.py", "--scenario", "bf16")
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr.startswith(f"amplint: error: internal error in the inference on {project / 'a.py'}: KeyError")
    assert done.stderr.count("\n") == 1


def test_neither_torch_nor_without_need_libcst_is_imported(project: Path) -> None:
    write(project, "block.py", without_notes(GOLDEN))
    program = """
import sys
from amplint.cli.main import main
for form in ("json", "text", "html"):
    try:
        main(["dtypes", "block.py", "--scenario", "bf16", "--output-format", form])
    except SystemExit:
        print(form, sorted({"torch", "libcst"} & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    imported = [line for line in done.stderr.splitlines() if not line.startswith("amplint: ")]
    assert imported == ["json []", "text ['libcst']", "html ['libcst']"]


FAILING = """\
import torch
from torch import nn


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor):
\tif self.training: "字", self.proj(x.float())
        return torch.addmm(
            x,
            x.float(), x
        )
"""


def test_what_fails_is_marked_at_the_expression(project: Path) -> None:
    text = FAILING.replace("\t", "        ")
    write(project, "m.py", text)
    lines = amplint("dtypes", "m.py", "--scenario", "bf16").stdout.splitlines()
    marks = [index for index, line in enumerate(lines) if "^" in line]
    assert len(marks) == 2
    for index, fails in zip(marks, ("self.proj(x.float())", "torch.addmm("), strict=True):
        column = lines[index].index("^")
        above = lines[index - 1]
        assert lines[index][0] == "#"
        assert lines[index][:column].strip("# ") == ""
        assert above.replace("字", "字 ")[column : column + lines[index].count("^")] == fails
    assert re.search(r"\^ error AMP102: nn\.Linear gets float32 `x\.float\(\)` and", lines[marks[0]])
    assert "^" not in amplint("dtypes", "m.py", "--scenario", "fp32").stdout
    assert "^" not in amplint("dtypes", "m.py", "--scenario", "autocast-bf16").stdout
    ast.parse("\n".join(lines))


def test_a_mark_in_the_first_columns_is_a_comment(project: Path) -> None:
    source = Source(project / "m.py", b"f(x)\n")
    file = file_dtypes(source, scenarios=(CONTROL,), device="cuda", torch_version=(2, 13))
    file = replace(file, failing=(Failing(Span(Location(1, 1), Location(1, 5)), "AMP104", "name", "why", (0,)),))
    assert plain(render(file, 0)) == "f(x)\n# ^^ error AMP104: why\n"


def test_help_lists_the_command() -> None:
    assert re.search(r"^  dtypes  +Show the dtype of each tensor", amplint("--help").stdout, re.MULTILINE)


def test_every_scenario_can_be_shown(project: Path) -> None:
    path = write(project, "m.py", "import torch\n\n\ndef f(x: torch.Tensor):\n    return x + 1\n")
    for scenario in SCENARIOS:
        for name in filter(None, (scenario.name, scenario.alias)):
            assert dtypes_by_text(path, "--scenario", name)["x + 1"] == scenario.inputs


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ("def f(a):\n    b = a\n    return b\n", {("a", 1): 2, ("b", 2): 3}),
        ("def f():\n    a = g()\n    a = h(a)\n    return a\n", {("a", 2): 3, ("a", 3): 4}),
        ("def f():\n    a = g()\n    a = 1\n    return a\n", {("a", 3): 4}),
        ("def f(c):\n    if c:\n        a = g()\n    return a\n", {("c", 1): 2}),
        ("def f():\n    if c:\n        a = g()\n        use(a)\n    else:\n        a = 1\n    use(a)\n", {("a", 3): 4}),
        ("def f(x):\n    a, b = x\n    a += b\n    return a\n", {("x", 1): 2, ("a", 2): 3, ("b", 2): 3}),
        ("for a in b:\n    use(a)\nuse(a)\n", {("a", 1): 2}),
        ("if (a := g()):\n    use(a)\n", {("a", 1): 2}),
        ("def f(a):\n    return lambda: a\n", {}),
        ("def f(a):\n    a = [a for a in a]\n    return a\n", {("a", 2): 3}),
    ],
)  # fmt: skip
def test_a_binding_is_told_by_its_next_reader(source: str, read: dict[tuple[str, int], int]) -> None:
    found = {
        (node.arg if isinstance(node, ast.arg) else node.id, node.lineno): reader.lineno
        for node, reader in first_reads(ast.parse(source)).items()
    }
    assert found == read


def test_readme_shows_the_real_output(project: Path) -> None:
    match = re.search(r"<!-- annotated: (amplint dtypes (\S+) .*?) -->\n```text\n(.*?)```", PAGE, re.DOTALL)
    assert match is not None
    command, name, shown = match.groups()
    write(project, name, without_notes(shown))
    assert amplint(*command.split()[1:]).stdout == shown
