"""``amplint explain``: texts and tracebacks, however they were printed, lead to rule, cause, remedy and finding."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from conftest import ROOT, Completed
from hypothesis import given
from hypothesis import strategies as st
from torch_process import with_torch

from amplint.cli.main import main
from amplint.explain.catalogue import recognise, without_colours
from amplint.explain.frames import parse_frames

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN = Path(__file__).parent / "golden" / "explain"
MIXED = "mat1 and mat2 must have the same dtype, but got Float and BFloat16"


def explain(*arguments: str, stdin: str = "") -> Completed:
    """Run ``amplint explain`` in this process."""
    result = CliRunner().invoke(main, ["explain", *arguments], input=stdin.encode())
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Completed(result.exit_code, result.stdout_bytes.decode(), result.stderr)


def explained(text: str, *arguments: str) -> dict[str, Any]:
    done = explain("-", "--output-format", "json", *arguments, stdin=text)
    assert done.status == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


# ---- tracebacks ---------------------------------------------------------------------------------------------------

MODEL = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim: int = 8):
        super().__init__()
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor):
        x = x.float()
        return self.proj(x)
"""
LINE = "return self.proj(x)"
ROW = 12

PYTHON = """\
Traceback (most recent call last):
  File "{root}train.py", line 9, in <module>
    model(batch)
    ^^^^^^^^^^^^
  File "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1778, in _wrapped_call_impl
    return self._call_impl(*args, **kwargs)
  File "{root}model.py", line 12, in forward
    return self.proj(x)
           ^^^^^^^^^^^^
  File "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 134, in forward
    return F.linear(input, self.weight, self.bias)
RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16
"""
IPYTHON = """\
---------------------------------------------------------------------------
RuntimeError                              Traceback (most recent call last)
Cell In[3], line 5
      3 model = Block()
----> 5 model(batch)

File /opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py:1778, in Module._wrapped_call_impl(self)
   1777 else:
-> 1778     return self._call_impl(*args, **kwargs)

File {root}model.py:12, in Block.forward(self, x)
     10 def forward(self, x: torch.Tensor):
     11     x = x.float()
---> 12     return self.proj(x)

RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16
"""
OLD_IPYTHON = """\
---------------------------------------------------------------------------
RuntimeError                              Traceback (most recent call last)
<ipython-input-5-94b4dc9b0a5a> in <module>
----> 1 model(batch)

/usr/local/lib/python3.7/dist-packages/torch/nn/modules/module.py in _call_impl(self, *input, **kwargs)
   1101                 or _global_forward_hooks or _global_forward_pre_hooks):
-> 1102             return forward_call(*input, **kwargs)

{root}model.py in forward(self, x)
     10     def forward(self, x: torch.Tensor):
     11         x = x.float()
---> 12         return self.proj(x)

RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16
"""
RICH = """\
╭─────────────────────────────── Traceback (most recent call last) ────────────────────────────────╮
│ {root}model.py:12 in forward                                                                     │
│                                                                                                  │
│   10 │   def forward(self, x: torch.Tensor):                                                     │
│   11 │   │   x = x.float()                                                                       │
│ ❱ 12 │   │   return self.proj(x)                                                                 │
╰──────────────────────────────────────────────────────────────────────────────────────────────────╯
RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16
"""
PYTEST = """\
=================================== FAILURES ===================================
___________________________________ test_a _____________________________________

    def test_a():
>       Block()(batch)

test_model.py:7:
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _

self = Block(), x = tensor([[1.]])

    def forward(self, x: torch.Tensor):
        x = x.float()
>       return self.proj(x)
E       RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16

{root}model.py:12: RuntimeError
"""
CHAINED = (
    PYTHON
    + """
During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "{root}train.py", line 11, in <module>
    save(checkpoint)
OSError: [Errno 28] No space left on device
"""
)
RANKS = "".join(f"[rank0]: {line}\n[rank1]: {line}\n" for line in PYTHON.splitlines())
LOGGED = "".join(
    f"2026-11-21 03:12:44,1{number:02} | ERROR | {line}\n" for number, line in enumerate(PYTHON.splitlines())
)
GROUPED = "  + Exception Group " + PYTHON.replace("\n", "\n  | ")
RAY = "".join(f"(TrainWorker pid=4242, ip=10.0.0.7) {line}\n" for line in PYTHON.splitlines())
COLOURED = re.sub(r'("[^"]+\.py")', "\x1b[35m\\1\x1b[0m", PYTHON)
COLOURED = re.sub("(RuntimeError|mat1)", "\x1b[1;31m\\1\x1b[0m", COLOURED)
PRINTED = {
    "python": PYTHON,
    "ipython": IPYTHON,
    "old-ipython": OLD_IPYTHON,
    "rich": RICH,
    "pytest": PYTEST,
    "chained": CHAINED,
    "ranks": RANKS,
    "logged": LOGGED,
    "group": GROUPED,
    "ray": RAY,
    "coloured": COLOURED,
    "crlf": PYTHON.replace("\n", "\r\n"),
}

each_print = pytest.mark.parametrize("text", PRINTED.values(), ids=PRINTED)


@pytest.fixture
def model(project: Path) -> Path:
    """A project with a model whose Linear gets a hardcoded upcast."""
    path = project / "model.py"
    path.write_text(MODEL)
    return path


@each_print
def test_every_kind_of_traceback_leads_to_the_finding(text: str, model: Path) -> None:
    document = explained(text.replace("{root}", f"{model.parent}/"))
    assert [match["family"] for match in document["matches"]] == ["linear-operands"]
    (finding, *_) = document["findings"]
    frame = document["frames"][finding["frame"]]
    assert (finding["code"], finding["location"]["row"], finding["relation"]) == ("AMP102", ROW, "line")
    assert (frame["filename"], frame["row"], frame["text"], frame["line"]) == (str(model), ROW, LINE, "same")
    assert frame["function"] in ("forward", "Block.forward", None)
    assert document["verify"] == f"{model}::Block"


TABLE = """\
import torch
from torch import nn


class Picked(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(8, 8)
        self.key = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, keys: bool = False):
        table = torch.eye(8)
        if keys:
            return x + self.key(table)
        return x + self.query(table)
"""


@pytest.mark.parametrize("row", [14, 15])
def test_every_place_of_a_finding_is_found(row: int, project: Path) -> None:
    """One constant, two layers, one finding: the traceback is of either layer."""
    (project / "model.py").write_text(TABLE)
    line = TABLE.splitlines()[row - 1].strip()
    document = explained(
        f'Traceback (most recent call last):\n  File "{project}/model.py", line {row}, in forward\n    {line}\n'
        "RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16\n"
    )
    (finding,) = document["findings"]
    assert (finding["code"], finding["location"]["row"], finding["relation"]) == ("AMP103", row, "line")


@pytest.mark.parametrize("root", ["", "./", "/home/someone/else/project/", "C:\\Users\\me\\project\\", "../project/"])
def test_paths_of_other_machines_are_found_by_their_ends(root: str, model: Path) -> None:
    document = explained(PYTHON.replace("{root}", root))
    assert document["findings"][0]["filename"] == str(model)


def test_two_equally_good_files_are_none(model: Path) -> None:
    for folder in ("a", "b"):
        (model.parent / folder).mkdir()
        shutil.copy(model, model.parent / folder / "model.py")
    model.unlink()
    document = explained(PYTHON.replace("{root}", "/elsewhere/"))
    assert document["findings"] == []
    assert all(frame["filename"] is None for frame in document["frames"])
    document = explained(PYTHON.replace("{root}", "/elsewhere/b/"))
    assert document["findings"][0]["filename"] == str(model.parent / "b" / "model.py")


def test_a_file_that_shares_the_name_only_must_hold_the_line(model: Path) -> None:
    text = PYTHON.replace("{root}", "/elsewhere/").replace(LINE, "return self.other(x)")
    assert all(frame["filename"] is None for frame in explained(text)["frames"])


def test_an_edited_file_is_followed_to_where_the_line_is_now(model: Path) -> None:
    text = PYTHON.replace("{root}", f"{model.parent}/")
    model.write_text("# two lines\n# more\n" + MODEL)
    document = explained(text)
    frame = document["frames"][document["findings"][0]["frame"]]
    assert (frame["row"], frame["row_now"], frame["line"]) == (ROW, ROW + 2, "moved")
    assert document["findings"][0]["location"]["row"] == ROW + 2
    assert f"model.py:{ROW + 2} in forward (the file was edited since: there it was line {ROW})" in explain(
        "-", stdin=text
    ).stdout.replace("\n  ", " ")


def test_an_edited_file_without_the_line_is_said_to_be(model: Path) -> None:
    text = PYTHON.replace("{root}", f"{model.parent}/")
    model.write_text(MODEL.replace(LINE, "return self.proj(x) * 1"))
    document = explained(text)
    (finding, *_) = document["findings"]
    assert (document["frames"][finding["frame"]]["line"], finding["relation"]) == ("gone", "function")
    assert "the line is no longer there" in explain("-", stdin=text).stdout.replace("\n  ", " ")


def test_a_traceback_without_a_finding_names_the_line_and_the_rules(model: Path) -> None:
    model.write_text(MODEL.replace("        x = x.float()\n", "        # as it comes\n"))
    done = explain("-", stdin=PYTHON.replace("{root}", f"{model.parent}/"))
    assert done.status == 0
    assert f"model.py:{ROW} in forward: amplint check reports nothing here" in done.stdout
    assert "amplint check . --select AMP104,AMP102,AMP106" in done.stdout
    assert "amplint verify model.py::Block" in done.stdout


def test_files_that_are_not_here_are_named(project: Path) -> None:
    done = explain("-", stdin=PYTHON.replace("{root}", "/elsewhere/"))
    assert "No file of the traceback is here (/elsewhere/model.py:12)" in done.stdout.replace("\n  ", " ")


def test_hostile_paths_and_rows_are_harmless(project: Path) -> None:
    (project / "folder.py").mkdir()
    (project / "binary.py").write_bytes(b"\xff\xfe\x00 not python")
    for path, row in (("folder.py", 1), ("binary.py", 1), ("~nobody-here/x.py", 1), ("\\\\", 3), ("a\\0.py", 10**9)):
        text = f'  File "{path}", line {row}, in f\n    x @ y\nRuntimeError: {MIXED}\n'
        assert explained(text)["matches"]


@given(st.lists(st.sampled_from(sorted({line for text in PRINTED.values() for line in text.split("\n")})), max_size=30))
def test_lines_in_any_order_are_read(lines: list[str]) -> None:
    text = "\n".join(lines)
    for frame in parse_frames(text, near=MIXED):
        assert frame.path in text
        assert frame.text in without_colours(text)
    recognise(text)


def test_frames_of_a_file_that_does_not_parse(model: Path) -> None:
    model.write_text(MODEL + "def broken(:\n")
    document = explained(PYTHON.replace("{root}", f"{model.parent}/"))
    assert document["findings"] == []
    assert document["verify"] is None


def test_the_frames_are_those_of_the_error(model: Path) -> None:
    frames = parse_frames(CHAINED.replace("{root}", "/r/"), near=MIXED)
    assert [(frame.parts[-1], frame.row) for frame in frames if not frame.of_torch] == [
        ("train.py", 9),
        ("model.py", 12),
    ]
    frames = parse_frames(CHAINED.replace("{root}", "/r/"), near="No space left")
    assert [(frame.parts[-1], frame.row) for frame in frames] == [("train.py", 11)]


CLUES = {
    "backward of an autograd Function": (
        '  File "model.py", line 3, in backward\n    return g @ w\n',
        ("AMP204", "AMP202", "AMP201"),
    ),
    "written in place or with out=": (
        '  File "model.py", line 3, in step\n    torch.mm(a, b, out=total)\n',
        ("AMP107",),
    ),
    "inference fast path": (
        '  File "train.py", line 3, in validate\n    self.encoder(x)\n'
        '  File "/x/site-packages/torch/nn/modules/transformer.py", line 917, in forward\n'
        "    return torch._transformer_encoder_layer_fwd(\n",
        ("AMP108",),
    ),
    "decorated with autocast": (
        '  File "/x/site-packages/torch/amp/autocast_mode.py", line 44, in decorate_autocast\n'
        '    return func(*args, **kwargs)\n  File "model.py", line 3, in forward\n    return x @ w\n',
        ("AMP106",),
    ),
    "evaluation or generation": ('  File "model.py", line 3, in generate\n    out = x @ w\n', ()),
    "worker thread": ('  File "/x/site-packages/torch/nn/parallel/parallel_apply.py", line 83, in _worker\n', ()),
    "nn.Linear without bias": ('  File "/x/site-packages/torch/nn/modules/linear.py", line 134, in forward\n', ()),
}


@pytest.mark.parametrize("phrase", CLUES)
def test_frames_tell_why_autocast_was_off(phrase: str, project: Path) -> None:
    frames, codes = CLUES[phrase]
    text = "RuntimeError: expected m1 and m2 to have the same dtype, but got: c10::Half != float\n"
    (match,) = explained(f"Traceback (most recent call last):\n{frames}{text}")["matches"]
    assert phrase in match["meaning"]
    assert tuple(match["codes"][: len(codes)]) == codes
    (plain,) = explained(text)["matches"]
    assert phrase not in plain["meaning"].replace("autograd Function's backward", "")


# ---- the fixtures -------------------------------------------------------------------------------------------------

FIXTURES = sorted(path for path in (ROOT / "fixtures" / "incidents").iterdir() if path.is_dir())


@cache
def failed(path: Path) -> str:
    """What a fixture prints to stderr when it fails."""
    done = with_torch(path)
    assert done.status != 0
    return done.stderr


@pytest.mark.parametrize("folder", FIXTURES, ids=lambda folder: folder.name)
def test_the_traceback_of_each_fixture_leads_to_its_finding(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "failing.py"
    monkeypatch.chdir(folder)
    document = explained(failed(path))
    expected = expected_codes(path)
    rows = [frame["row"] for frame in document["frames"] if frame["filename"] == str(path)]
    finding, *_ = document["findings"]
    assert finding["code"] in expected[finding["location"]["row"]]
    assert document["frames"][finding["frame"]]["row"] == rows[-1]
    if rows[-1] in expected:
        assert (finding["location"]["row"], finding["relation"]) == (rows[-1], "line")
    else:
        assert finding["relation"] == "cause"


def test_the_command_reads_a_pipe() -> None:
    text = failed(ROOT / "fixtures" / "incidents" / "lookup_free_quantizer" / "failing.py")
    command = [sys.executable, "-m", "amplint", "explain", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "error[AMP106]" in done.stdout
    assert "\x1b" not in done.stdout


def expected_codes(path: Path) -> dict[int, list[str]]:
    marks = ((row, re.search(r"# expect: (.*)$", line)) for row, line in enumerate(path.read_text().splitlines(), 1))
    return {row: mark[1].split(", ") for row, mark in marks if mark}


# ---- the command --------------------------------------------------------------------------------------------------


def test_codes_and_names_are_rules() -> None:
    page = explain("AMP105")
    assert (page.status, page.stdout.splitlines()[0]) == (0, "AMP105 index-write")
    for words in (["amp105"], ["index-write"], ["AMP 105"], ["AMP", "105"], ["AMP105 index-write"], [" AMP105 "]):
        assert explain(*words).stdout == page.stdout


def test_a_rule_as_json() -> None:
    document = json.loads(explain("AMP105", "--output-format", "json").stdout)
    assert document["rule"]["code"] == "AMP105"
    assert "What it does" in document["rule"]["documentation"]


@pytest.mark.parametrize("words", [["AMP1055"], ["AMP15"], ["index-writ"], ["index", "write"], ["indexwrite"]])
def test_words_near_a_rule_are_not_taken_for_a_text(words: list[str]) -> None:
    done = explain(*words)
    assert (done.status, done.stdout) == (2, "")
    assert re.search(r"unknown rule .*\(did you mean '(?:AMP1\d\d|index-write)'\?\)", done.stderr)


def test_a_text_needs_no_quotes() -> None:
    assert explain(*MIXED.split()).stdout == explain(MIXED).stdout


@pytest.mark.parametrize(
    "text",
    [
        "IndexError: list index out of range in the middle of training",
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "frobnicate the quux",
    ],
)
def test_an_unknown_text_says_what_to_paste(text: str) -> None:
    for arguments, stdin in (([text], ""), (["-"], text)):
        done = explain(*arguments, stdin=stdin)
        assert (done.status, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        assert "paste the last line of the traceback" in done.stderr
        assert "AMP105" in done.stderr


@pytest.mark.parametrize("stdin", ["", "\n  \n"])
def test_an_empty_stdin_says_what_to_paste(stdin: str) -> None:
    done = explain("-", stdin=stdin)
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr.startswith("amplint: error: there is nothing on stdin: paste")


def test_output_of_check_leads_to_the_rule() -> None:
    done = explain("error[AMP107] out-variant-matmul: addmm gets float32 `a` and float16 `b`")
    assert done.status == 2
    assert "amplint explain AMP107" in done.stderr


def test_keys_of_the_json(model: Path) -> None:
    document = explained(PYTHON.replace("{root}", f"{model.parent}/"))
    assert list(document) == ["matches", "frames", "findings", "verify"]
    (match,) = document["matches"]
    assert list(match) == ["family", "kind", "codes", "dtypes", "text", "says", "meaning", "origin", "remedies"]
    assert match["dtypes"] == [
        {"role": "input", "operand": "activation (mat1)", "dtype": "float32"},
        {"role": "weight", "operand": "weight (mat2)", "dtype": "bfloat16"},
    ]
    assert list(match["remedies"][0]) == ["message", "code"]
    assert list(document["frames"][0]) == ["path", "row", "function", "text", "filename", "row_now", "line"]
    checked = json.loads(CliRunner().invoke(main, ["check", "--output-format", "json", str(model)]).stdout)
    (finding,) = document["findings"]
    assert {key: value for key, value in finding.items() if key not in ("frame", "relation")} in [
        {**one, "scenarios": finding["scenarios"]} for one in checked
    ]


def test_configuration_names_the_device(model: Path) -> None:
    (model.parent / "amplint.toml").write_text('device = "xpu"\nselect = ["AMP601"]\n')
    text = PYTHON.replace("{root}", f"{model.parent}/")
    assert explained(text)["findings"][0]["device"] == "xpu"
    assert explained(text, "--isolated")["findings"][0]["device"] == "cuda"


# ---- as people read it --------------------------------------------------------------------------------------------


def golden_model(project: Path) -> str:
    (project / "model.py").write_text(MODEL)
    return PYTHON.replace("{root}", "/home/someone/project/")


INPUTS: dict[str, Callable[[Path], str]] = {
    "traceback": golden_model,
    "linear": lambda project: MIXED,
    "attention": lambda project: (
        "Expected query, key, and value to have the same dtype, but got query.dtype: float key.dtype: c10::Half and "
        "value.dtype: c10::Half instead."
    ),
    "mask": lambda project: "value cannot be converted to type at::Half without overflow: -1e+09",
    "scaler": lambda project: "ValueError: Attempting to unscale FP16 gradients.",
    "hardware": lambda project: "ValueError: Your setup doesn't support bf16/gpu. You need torch>=1.10",
}


@pytest.mark.parametrize("name", INPUTS)
def test_answers_read_as_they_should(name: str, project: Path) -> None:
    """``AMPLINT_GOLDEN=1`` writes the files anew."""
    done = explain("-", stdin=INPUTS[name](project))
    assert done.status == 0, done.stderr
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("AMPLINT_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(done.stdout)
    assert done.stdout == path.read_text()


def test_a_terminal_gets_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    from amplint.config import Config
    from amplint.explain.answer import answer
    from amplint.explain.render import full
    from amplint.judging import judging_options
    from amplint.plugins import load_rules
    from amplint.report import Context, plain

    lines = list(full(answer(MIXED, judging_options(Config(), load_rules())), Context({})))
    assert plain(lines) == explain(MIXED).stdout
    assert {"bold red", "bold", "dim", "cyan"} <= {style for line in lines for _, style in line}
