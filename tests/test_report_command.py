"""``amplint report FILE:LINE``: the smallest file that gives the same finding alone."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from conftest import ROOT, Completed
from conftest import amplint as command
from rule_examples import FOLDER, RULES, every_bad

from amplint.reduce.neutral import neutralise
from amplint.reduce.reduction import Reduction, TimeUpError
from amplint.reduce.unbound import unbound
from amplint.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from amplint.examples.cases import Case

Run = Callable[..., Completed]


def body(document: str) -> str:
    """The file without its head."""
    return "".join(line for line in document.splitlines(keepends=True) if not line.startswith("#")).strip() + "\n"


def shown_again(document: str, folder: Path) -> list[dict[str, Any]]:
    """What the command in the head finds in the file, in an empty folder."""
    path = folder / "alone" / "FILE"
    path.parent.mkdir()
    path.write_text(document, encoding="utf-8")
    found = re.search(r"^# Show it again: amplint (check .*) FILE$", document, re.MULTILINE)
    assert found is not None
    listed: list[dict[str, Any]] = json.loads(
        command(*shlex.split(found[1]), "--output-format", "json", str(path)).stdout
    )
    return listed


def alike(finding: dict[str, Any]) -> tuple[Any, ...]:
    return finding["code"], finding["scenarios"], finding["certainty"]


# ---- what it writes -----------------------------------------------------------------------------------------------

PROGRAM = '''\
"""Our secret model."""
import os
import torch

SECRET = "s3://bucket"  # a comment


class Customer(Base):
    """Documented."""

    def __init__(self, revenue):
        super().__init__()
        self.revenue = revenue
        self.weight = os.getenv("TOKEN")

    @staticmethod
    def churn(rate, *, other=2):
        if rate > SECRET:
            for item in range(10):
                print("hello", item)
                rate.half()
        return other


def unrelated():
    return Customer(3)
'''
SMALLEST = "class C1:\n\n    @staticmethod\n    def f1(x1, *, x2=2):\n        x1.half()\n"


def test_what_is_left(project: Path, run: Run) -> None:
    (project / "a.py").write_text(PROGRAM)
    done = run("report", "a.py:21", "--scenario", "fp16")
    assert done.status == 0
    assert body(done.stdout) == SMALLEST
    head = done.stdout.splitlines()[:6]
    assert head[:3] == [
        "# amplint report: TOY101 toy-half (error, proven)",
        "# half() is called",
        "# Scenarios: fp16; device cuda",
    ]
    assert re.fullmatch(r"# With amplint \S+, Python \S+, libcst \S+, \w+", head[3])
    assert re.fullmatch(r"# Show it again: amplint check --isolated --scenario fp16 --torch-version \S+ FILE", head[4])
    assert re.fullmatch(
        r"amplint: TOY101: reduced from 26 to 5 lines in \S+ s\. Look through it before you send it\.\n", done.stderr
    )


def test_names_are_renamed_consistently(project: Path) -> None:
    (project / "a.py").write_text(
        "class Bank:\n    def __init__(self, loss):\n        self.loss = loss\n"
        "        self.register_buffer('table', 1)\n"
        "    def forward(self, dim):\n        return pay(self.loss.mean(dim=dim), self.table, loss=dim).half()\n"
        "def pay(x, y, loss):\n    return x\n"
    )
    tree = ast.parse((project / "a.py").read_text())
    reduction = Reduction(tree, tree.body[0], lambda text, rows: True, float("inf"))
    assert reduction.begins()
    neutralise(reduction)
    assert reduction.text == (
        "class C1:\n\n    def __init__(self, x3):\n        self.x3 = x3\n        self.register_buffer('a1', 1)\n\n"
        "    def forward(self, x4):\n        return f1(self.x3.mean(dim=x4), self.a1, x3=x4).half()\n\n"
        "def f1(x1, x2, x3):\n    return x1\n"
    )


def test_output_file(project: Path, run: Run) -> None:
    (project / "a.py").write_text(PROGRAM)
    done = run("report", "a.py:21:17", "--output-file", "alarm.py")
    assert (done.status, done.stdout) == (0, "")
    document = (project / "alarm.py").read_text()
    assert body(document) == SMALLEST
    assert re.search(r"check --isolated --torch-version \S+ alarm\.py\n", document)


def test_no_name_is_left_that_nothing_binds(project: Path, run: Run) -> None:
    (project / "a.py").write_text("def f(x):\n    size = x.shape\n    y = x.view(size)\n    y.half(size)\n")
    text = body(run("report", "a.py:4").stdout)
    assert text == "def f1(x1):\n    x2 = x1.shape\n    x3 = x1\n    x3.half(x2)\n"
    assert unbound(text) == frozenset()
    assert unbound("def f():\n    return x, len, f\nfor x1 in y:\n    pass\n") == {"x", "y"}


# ---- the property -------------------------------------------------------------------------------------------------


def smallest_first(code: str) -> list[Case]:
    """The bad examples of a rule that are files."""
    files = [case for case in every_bad() if case.rule.code == code and case.where.endswith(".py")]
    return sorted(files, key=lambda case: len(case.example.source))


def first_found(code: str) -> tuple[Path, list[str], dict[str, Any]]:
    """A file in which a rule finds something, by which options, and the finding."""
    for case in smallest_first(code):
        path = FOLDER / code / f"{case.name}.py"
        settings = ["--select", code, "--device", case.example.device]
        settings += ["--pedantic"] if case.example.pedantic else []
        settings += ["--torch-version", case.example.torch_version] if case.example.torch_version else []
        for scenario in ([], ["--scenario", case.example.scenario or "auto"]):
            options = [*settings, *scenario]
            found = json.loads(command("check", *options, "--output-format", "json", str(path)).stdout)
            for finding in found:
                if finding["code"] == code:
                    return path, options, finding
    raise AssertionError(f"no example of {code} has a finding of it")


@pytest.mark.parametrize("code", [rule.code for rule in RULES if smallest_first(rule.code)])
def test_the_reduced_file_gives_the_same_finding(code: str, tmp_path: Path) -> None:
    """After each step, and so wherever the time ends."""
    path, settings, wanted = first_found(code)
    done = command("report", f"{path}:{wanted['location']['row']}", *settings, "--timeout", "0.3")
    assert done.status == 0, done.stderr
    assert alike(wanted) in [alike(finding) for finding in shown_again(done.stdout, tmp_path)]


@pytest.mark.parametrize("name", ["lookup_free_quantizer", "kv_cache_attention"])
def test_incidents(name: str, tmp_path: Path) -> None:
    path = ROOT / "fixtures" / "incidents" / name / "failing.py"
    wanted = json.loads(command("check", "--output-format", "json", str(path)).stdout)[0]
    done = command("report", f"{path}:{wanted['location']['row']}", "--select", wanted["code"], "--timeout", "5")
    assert alike(wanted) in [alike(finding) for finding in shown_again(done.stdout, tmp_path)]
    assert len(done.stdout.splitlines()) < len(path.read_text().splitlines())
    ast.parse(done.stdout)


TABLES = """\
import torch
from torch import nn

WIDTH = 8


class Upcast(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x.float() * self.scale.float()


if __name__ == "__main__":
    print(Upcast(WIDTH))
"""
MODEL = """\
from torch import nn

from .tables import WIDTH
from .tables import Upcast as Norm


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Norm(WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.proj(self.norm(x))
"""


def test_what_rests_on_another_file(project: Path, tmp_path: Path) -> None:
    (project / "parts").mkdir()
    (project / "parts" / "__init__.py").write_text("")
    (project / "parts" / "tables.py").write_text(TABLES)
    (project / "parts" / "model.py").write_text(MODEL)
    wanted = json.loads(command("check", "--output-format", "json", "parts/model.py").stdout)[0]
    done = command("report", f"parts/model.py:{wanted['location']['row']}", "--timeout", "5")
    assert done.status == 0, done.stderr
    assert alike(wanted) in [alike(finding) for finding in shown_again(done.stdout, tmp_path)]
    assert "tables" not in done.stdout
    assert ", which hold what was imported" in done.stderr


# ---- what it refuses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a.py",), "'a.py' names no line: give FILE:LINE, such as model.py:41"),
        (("nowhere.py:3",), "no such file: nowhere.py"),
        (("n.ipynb:3",), "n.ipynb is a notebook: report reads Python"),
        (("a.py:2",), "no finding at a.py:2; nearest: line 1 (TOY101), line 4 (TOY102), line 6 (TOY101)"),
        (("a.py:4",), "several rules find something at a.py:4: pick one with --select TOY101 or --select TOY102"),
        (("a.py:4", "--select", "TOY110"), "unknown rule selector 'TOY110' (did you mean 'TOY109'?)"),
        (("clean.py:1",), "no finding at clean.py:1, nor anywhere else in the file (--pedantic shows what is merely"),
        (("broken.py:1",), "there is nothing to reduce in broken.py: Python 3"),
        (("a.py:1", "--timeout", "0"), "Invalid value for '--timeout'"),
    ],
)
def test_refusals(project: Path, run: Run, arguments: tuple[str, ...], message: str) -> None:
    (project / "a.py").write_text("x.half()\n\n\nx.half(); x.double()\n\nx.half()\n")
    (project / "clean.py").write_text("x = 1\n")
    (project / "n.ipynb").write_text("{}")
    (project / "broken.py").write_text("def f(\n")
    done = run("report", *arguments)
    assert (done.status, done.stdout) == (2, "")
    assert message in done.stderr
    assert len([line for line in done.stderr.splitlines() if line.startswith(("amplint: ", "Error: "))]) == 1


def test_one_of_several_is_picked(project: Path, run: Run) -> None:
    (project / "a.py").write_text("x.half(); x.double()\n")
    assert body(run("report", "a.py:1", "--select", "TOY102").stdout) == "x.double()\n"
    assert body(run("report", "a.py:1:11").stdout) == "x.double()\n"


def test_time_that_does_not_suffice(project: Path, run: Run) -> None:
    (project / "a.py").write_text(PROGRAM)
    done = run("report", "a.py:21", "--timeout", "0.000001")
    assert "; more time (--timeout) may make it smaller and replace all names and strings. Look" in done.stderr
    assert "Customer" in done.stdout
    assert Source(project / "b.py", done.stdout.encode()).tree.body


def test_the_last_of_the_time_is_for_the_names(project: Path) -> None:
    tree = ast.parse(PROGRAM)
    reduction = Reduction(tree, tree.body[-1], lambda text, rows: True, float("inf"))
    assert reduction.begins()
    reduction.deadline = 0.0
    with pytest.raises(TimeUpError):
        neutralise(reduction)
    assert "Customer" in ast.unparse(tree)
    reduction.deadline = float("inf")
    neutralise(reduction)
    assert reduction.text == ast.unparse(tree) + "\n"
    assert not re.search("Customer|secret|revenue|s3", reduction.text)


def test_odd_source_is_read_as_python_reads_it(project: Path, run: Run) -> None:
    (project / "a.py").write_bytes("\ufeff# é\r\ns = '\\d'\r\nx.half('é')\r\n".encode())
    (project / "b.py").write_bytes("# coding: latin-1\nx.half('é')\n".encode("latin-1"))
    for place in ("a.py:3", "b.py:2"):
        done = run("report", place)
        assert (done.status, body(done.stdout)) == (0, "x.half('')\n")
        assert "Warning" not in done.stderr


def test_an_unpacked_tuple_keeps_its_parts(project: Path, run: Run) -> None:
    (project / "a.py").write_text("def f(pair):\n    left, right = pair\n    left.half(); print(right)\n")
    assert body(run("report", "a.py:3").stdout) == "def f1(x1):\n    x2, x3 = x1\n    x2.half()\n"
