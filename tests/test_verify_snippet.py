"""Flagged operations run alone where their function or class does not run as a whole."""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from pathlib import Path

import pytest
from conftest import amplint
from rule_examples import every_bad

from amplint.engine import Options, check_file
from amplint.finding import Severity
from amplint.infer.lattice.dtypes import BITS, OFF, Lane
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS, find_scenario
from amplint.infer.lattice.values import Layer, Tensor
from amplint.infer.torch_model.torch_ops import find_op
from amplint.plugins import load_rules
from amplint.source import Source
from amplint.verify.job import Job
from amplint.verify.parent import run_job
from amplint.verify.scene import LayerPart
from amplint.verify.snippet import BY_CALLERS, NO_OPERATION, Snippet, snippets
from amplint.verify.snippet_writing import Unknown, write
from amplint.verify.witness import Sight

RULES = tuple(load_rules())

HEAD = """\
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch import einsum as contract

"""

STRICT = {
    "mm": ("torch.mm(x, torch.eye(4))", "torch.mm(x, torch.eye(4, dtype=x.dtype))"),
    "matmul": ("x @ torch.ones(4, 4)", "x @ torch.ones(4, 4).to(x)"),
    "linear": ("F.linear(x, torch.ones(4, 4), torch.ones(4))", "F.linear(x, torch.ones(4, 4).to(x), x)"),
    "einsum": ('contract("...ij,jk->...ik", x, torch.ones(4, 4))', 'contract("...ij,jk->...ik", x, x)'),
    "conv": ("F.conv2d(x, torch.ones(4, 4, 1, 1), None, stride)", "F.conv2d(x, torch.ones(4, 4, 1, 1).to(x.dtype))"),
    "multi_dot": ("torch.linalg.multi_dot([x, torch.ones(4, 4), x])", "torch.linalg.multi_dot([x, x.new_ones(4, 4)])"),
    "tensordot": ("torch.tensordot(x, torch.ones(4, 4), dims=heads)", "torch.tensordot(x, x, dims=heads)"),
    "group_norm": ("F.group_norm(x, heads, x, torch.ones(4))", "F.group_norm(x, heads, x, x)"),
    "lerp": ("torch.zeros(4, 4).lerp(x, 0.5)", "torch.zeros(4, 4).lerp(x.float(), 0.5)"),
    "addmm out": ("torch.addmm(table, x, x, out=table)", "torch.addmm(table, x.float(), x.float(), out=table)"),
    "addmm_": ("torch.zeros(4, 4).addmm_(x, x, beta=heads)", "x.clone().addmm_(x, x, beta=heads)"),
    "bucket": ("F.embedding_bag(ids, torch.ones(4, 4), per_sample_weights=x, mode='sum')", "F.embedding(ids, x)"),
    "grid": ("F.grid_sample(x, torch.zeros(1, 3, 3, 2), mode='nearest')", "F.grid_sample(x, x, mode='nearest')"),
    "list": ("torch.linalg.multi_dot(parts)", "torch.cat(parts)"),
    "attention": (
        "F.scaled_dot_product_attention(\n"
        "        x,  # queries\n"
        "        torch.zeros(1, 2, 4, 8),\n"
        "        torch.zeros(1, 2, 4, 8),\n"
        "        is_causal=heads > 1,\n"
        "    )",
        "F.scaled_dot_product_attention(x, x, x, is_causal=heads > 1)",
    ),
    "index write": ("table[ids.long()] = x", "table[2] = x"),
    "column write": ("table[:, ids.long()] = x", "table[:, 2] = x"),
    "mask write": ("table[keep > 0] = x", "table[keep > 0] = x.to(table.dtype)"),
    "index_add_": ("table.index_add_(0, ids, x)", "table.index_add_(0, ids, x.float())"),
    "scatter_": ("table.scatter_(1, ids, x)", "table.scatter_(1, ids, x.to(table))"),
    "masked_scatter_": ("table.masked_scatter_(keep > 0, x)", "table.masked_fill_(keep > 0, 1.0)"),
    "where": ("torch.where(keep > 0, x, table) @ x", "torch.where(keep > 0, x, table)"),
    "layer": ("nn.Linear(4, 4, bias=False)(x)", "nn.Linear(4, 4, bias=False)(table)"),
    "one of two layers": (
        "(nn.Linear(4, 4) if heads > 2 else nn.Identity())(x)",
        "(nn.Identity() if heads > 2 else nn.ReLU())(x)",
    ),
    "layers": ("images(x)", "images.to(x.dtype)"),
    "recurrent": ("nn.LSTM(4, 4)(x)", "nn.LSTM(4, 4)(table)"),
    "self-attention": ("nn.MultiheadAttention(4, 2)(x, x, x)", "nn.MultiheadAttention(4, 2)(*[x.float()] * 3)"),
}
"""An operation that raises in ``bf16``, and a look-alike that is right."""

AUTOCAST = {
    "index write after": ("table[ids] = low", "table[ids] = low.float()"),
    "product after": ("torch.bmm(low[None], table[None])", "torch.bmm(low[None].float(), table[None])"),
    "banned": (
        "with torch.autocast('cuda', dtype=torch.float16):\n        F.binary_cross_entropy(table, table)",
        "with torch.autocast('cuda', dtype=torch.float16):\n        F.binary_cross_entropy_with_logits(table, table)",
    ),
    "in place": (
        "with torch.autocast('cuda', dtype=torch.float16):\n        table.addmm_(low, low)",
        "with torch.autocast('cuda', dtype=torch.float16):\n        torch.addmm(table, low, low)",
    ),
}
"""The same in a region that the code opens itself."""

IMPOSSIBLE = "F.conv2d(x, torch.ones(4, 4, 1, 1), groups=-3)"


def file_of(version: int) -> str:
    """One function for each operation, all in one class that cannot be built: one process runs them."""
    lines = [HEAD, "", "class Operations:", "    def __init__(self, service):", "        service.connect()", ""]
    for number, pair in enumerate(STRICT.values()):
        lines += [
            f"    def strict_{number}(self, x: Tensor, ids: Tensor, keep: Tensor, stride, heads=2):",
            "        table = torch.zeros(4, 4)",
            "        parts = [x, torch.ones(4, 4)]",
            "        images = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())",
            "        " + pair[version].replace("\n", "\n    "),
            "        return table, parts, images",
            "",
        ]
    for number, pair in enumerate(AUTOCAST.values()):
        lines += [
            f"    def autocast_{number}(self, ids: Tensor):",
            "        table = torch.ones(4, 4, device='cuda')",
            "        with torch.autocast('cuda', dtype=torch.float16):",
            "            low = table @ table",
            "        " + pair[version].replace("\n", "\n    "),
            "        return table, low",
            "",
        ]
    if version == 0:
        lines += ["    def impossible(self, x: Tensor):", f"        {IMPOSSIBLE}", ""]
    return "\n".join(lines)


def rows_of(text: str, operations: dict[str, tuple[str, str]]) -> dict[str, int]:
    """The row of each operation: that of its last line where a region is opened around it."""
    found = {}
    for name, (flagged, _) in operations.items():
        first, *rest = flagged.split("\n")
        target = rest[0] if first.startswith("with ") else first
        rows = [row for row, line in enumerate(text.split("\n"), 1) if line.strip() == target.strip()]
        assert len(rows) == 1, name
        found[name] = rows[0]
    return found


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, str], dict]:
    """The rows of the result by source row and scenario."""
    path = tmp_path_factory.mktemp("alone") / "operations.py"
    path.write_text(file_of(0))
    result = amplint("verify", str(path), "--run-on", "cpu", "--isolated", "--pedantic", "--output-format", "json")
    assert result.status == 1, result.stderr
    assert result.stderr == ""
    found = {
        f["fingerprint"]: f
        for f in json.loads(amplint("check", str(path), "--isolated", "--pedantic", "--output-format", "json").stdout)
    }
    return {(found[row["fingerprint"]]["location"]["row"], row["scenario"]): row for row in json.loads(result.stdout)}


@pytest.mark.parametrize("name", STRICT)
def test_operation_is_confirmed_without_autocast(name: str, verified: dict[tuple[int, str], dict]) -> None:
    row = verified[rows_of(file_of(0), STRICT)[name], "bf16"]
    assert (row["verdict"], row["mode"]) == ("confirmed", "eval"), row["error"]
    assert row["location"]["row"] == rows_of(file_of(0), STRICT)[name]


@pytest.mark.parametrize("name", AUTOCAST)
def test_operation_is_confirmed_under_the_autocast_of_its_place(
    name: str, verified: dict[tuple[int, str], dict]
) -> None:
    for scenario in ("autocast-fp16", "bf16"):
        row = verified[rows_of(file_of(0), AUTOCAST)[name], scenario]
        assert row["verdict"] == "confirmed", row["error"]


def test_nothing_else_is_flagged(verified: dict[tuple[int, str], dict]) -> None:
    text = file_of(0)
    expected = {*rows_of(text, STRICT).values(), *rows_of(text, AUTOCAST).values()}
    impossible = text.split("\n").index(f"        {IMPOSSIBLE}") + 1
    assert {row for row, _ in verified} == expected | {impossible}


def test_look_alikes_have_no_finding(tmp_path: Path) -> None:
    path = tmp_path / "operations.py"
    path.write_text(file_of(1))
    result = amplint("check", str(path), "--isolated", "--output-format", "concise")
    assert (result.status, result.stdout) == (0, "")


FREE = """\
import torch

open("imported", "w").close()


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad_output):
        (weight,) = ctx.saved_tensors
        return grad_output @ weight.t(), None


def project(x: torch.Tensor):
    return torch.mm(x, torch.eye(4))


table = torch.zeros(4, 4, device="cuda")
with torch.autocast("cuda", dtype=torch.float16):
    low = table @ table
torch.bmm(low[None], table[None])
"""


def test_the_top_level_is_a_target_that_is_not_imported(project: Path) -> None:
    Path("free.py").write_text(FREE)
    arguments = ("free.py::<module>", "--run-on", "cpu", "--scenario", "bf16", "--output-format", "json")
    rows = json.loads(amplint("verify", *arguments).stdout)
    assert [(row["code"], row["verdict"]) for row in rows] == [("AMP103", "confirmed")]
    assert rows[0]["target"].endswith("free.py::<module>")
    assert not Path("imported").exists()


def written(text: str, **options: object) -> dict[str, Snippet | str]:
    """By the code and row of each finding."""
    source = Source(Path("/project/module.py"), text.encode())
    chosen = Options(rules=RULES, scenarios=DEFAULT_SCENARIOS, each_place=True, **options)
    findings = check_file(source, chosen).findings
    made = snippets(source, findings, chosen)
    return {f"{finding.code} {finding.span.start.row}": made[finding.fingerprint] for finding in findings}


def test_what_cannot_run_alone_says_why() -> None:
    made = written(FREE)
    assert made["AMP202 13"] == NO_OPERATION
    assert made["AMP204 15"] == "`weight.t()` may be float16 or float32"


PASSED = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)
        self.wide = nn.Linear(4, 4, dtype=torch.float32)


def project(block: Block, x: torch.Tensor):
    return block.proj(x)


def widen(block: Block, x: torch.Tensor):
    return block.wide(x)


def local(x: torch.Tensor):
    layer = nn.Linear(4, 4)
    return layer(x)
"""


@pytest.mark.parametrize(
    ("call", "scenario", "explicit", "passed"),
    [
        ("block.proj(x)", "bf16", False, True),
        ("block.proj(x)", "bf16-mixed-params", False, True),
        ("block.wide(x)", "bf16", True, True),
        ("block.wide(x)", "bf16-mixed-params", True, False),
        ("layer(x)", "bf16", False, False),
    ],
)
def test_what_is_supposed_of_a_module_that_a_caller_passes_confirms_nothing(
    call: str, scenario: str, explicit: bool, passed: bool
) -> None:
    """It has the scenario's parameters, except what the source makes with a dtype where that is kept."""
    source = Source(Path("/project/module.py"), PASSED.encode())
    node = next(n for n in ast.walk(source.tree) if isinstance(n, ast.Call) and ast.unparse(n) == call)
    weight = Tensor((Lane(BITS["float32"]),), 1, explicit=explicit, leaf=True)
    layer = Layer("torch.nn.Linear", {"weight": weight}, None, source.span(node))
    values = {id(node.func): layer, id(node.args[0]): Tensor((Lane(BITS["bfloat16"]),), 1)}
    op, ambient = find_op("torch.nn.functional.linear"), find_scenario(scenario)
    assert op is not None
    assert ambient is not None
    sight = Sight(node, op, (), frozenset({scenario}), (OFF,), values, {})
    if passed:
        with pytest.raises(Unknown, match="the caller passes `block`, and decides the dtype of its parameters"):
            write(source, sight, 0, ambient)
    else:
        (made, _) = write(source, sight, 0, ambient).places
        assert made.layer == LayerPart("torch.nn.Linear", {"weight": "float32"}, ())


def test_a_call_with_arguments_that_are_not_known_says_why() -> None:
    made = written(f"{HEAD}\ndef apply(x: Tensor, options):\n    torch.addmm(x, x, torch.eye(4), **options)\n")
    assert made == {"AMP103 8": "the arguments in **`options` are not known"}


def test_an_operation_that_float32_refuses_too_is_not_runnable(verified: dict[tuple[int, str], dict]) -> None:
    row = verified[file_of(0).split("\n").index(f"        {IMPOSSIBLE}") + 1, "bf16"]
    assert row["verdict"] == "not-runnable"
    assert f"no small shapes found under which `{IMPOSSIBLE}` runs in float32" in row["error"]


def test_names_stay_names_and_operands_become_places() -> None:
    (made,) = written(f"{HEAD}\ndef apply(x: Tensor):\n    contract('ij,jk', x.relu(), torch.eye(4))\n").values()
    assert isinstance(made, Snippet)
    assert made == Snippet.from_json(json.loads(json.dumps(made.to_json())))
    scene = made.scenes["fp16"]
    assert scene.text == "contract('ij,jk', tensor_0, tensor_1)"
    assert scene.names == {"contract": "torch.einsum"}
    assert [place.dtypes for place in scene.places] == [("float16",), ("float32",)]
    assert scene.autocast is None


def has_no_kernel(snippet: Snippet, device: str) -> bool:
    """Whether torch refuses an operation's tensors in all its scenes: a model is seldom made in such a dtype, so the
    finding is a warning."""
    op = find_op(snippet.op)
    refused = set(op.lacks.get(device, ())) if op is not None else set()
    given = [{dtype for place in scene.places for dtype in place.dtypes} for scene in snippet.scenes.values()]
    return all(refused & dtypes for dtypes in given)


BY_HAND = """\
import torch
import torch.nn.functional as F
from torch import nn


class Projection(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))
        self.bias = nn.Parameter(torch.zeros(4))

    def decode(self, x: torch.Tensor):
        return F.linear(x, self.weight.to(x.dtype), self.bias.to(x.dtype))

    def project(self, x: torch.Tensor):
        return F.linear(x, self.weight.to(x.dtype), self.bias)
"""


def test_operands_that_disagree_for_some_callers_alone_are_not_run() -> None:
    """With a caller that passes what the scenario says they agree, and a run would refute the finding."""
    assert written(BY_HAND) == {"AMP104 16": BY_CALLERS}
    source = Source(Path("/project/module.py"), BY_HAND.replace("self.bias)", "torch.zeros(4))").encode())
    options = Options(rules=RULES, scenarios=DEFAULT_SCENARIOS)
    (finding,) = check_file(source, options).findings
    assert isinstance(snippets(source, [finding], options)[finding.fingerprint], Snippet)


def test_every_operation_in_the_examples_of_rules_fails_alone_where_it_is_said_to_raise(tmp_path: Path) -> None:
    jobs: dict[str, list[Snippet]] = defaultdict(list)
    raises: set[tuple[str, str]] = set()
    for rule, name, example, _ in every_bad():
        source = Source(tmp_path / f"{rule.code}_{name}.py", example.source.encode())
        options = Options(rules=RULES, device=example.device)
        findings = check_file(source, options).findings
        made = snippets(source, findings, options)
        for finding in findings:
            snippet = made[finding.fingerprint]
            if isinstance(snippet, Snippet):
                jobs[example.device].append(snippet)
                if finding.severity is Severity.ERROR or has_no_kernel(snippet, example.device):
                    raises.add((example.device, finding.fingerprint))
    assert len(raises) >= 25
    scenarios = tuple(scenario.name for scenario in DEFAULT_SCENARIOS)
    for device, found in jobs.items():
        parts = tuple(snippet.to_json() for snippet in found)
        job = Job(str(tmp_path), None, device, "cpu", scenarios, results="", root=str(tmp_path), snippets=parts)
        outcomes = run_job(job).outcomes
        assert len(outcomes) == sum(name in scenarios for snippet in found for name in snippet.scenes)
        for outcome in outcomes:
            expected = "failed" if (device, outcome.reached[0]) in raises else "clean"
            assert outcome.kind == expected, outcome
