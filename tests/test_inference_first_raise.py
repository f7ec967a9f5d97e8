"""Of operations that one operand out of place makes fail, the one that raises first is reported."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from amplint.claims.conflicts import conflicts, early_ends
from amplint.engine import Options, check_file
from amplint.finding import Certainty
from amplint.infer.entry.analysis import analyse
from amplint.infer.lattice.scenarios import CONTROL, DEFAULT_SCENARIOS
from amplint.plugins import load_rules
from amplint.source import Source


def rows_of(code: str) -> list[int]:
    source = Source(Path("/project/net.py"), code.encode())
    facts = analyse(source, scenarios=(CONTROL, *DEFAULT_SCENARIOS), device="cuda", torch_version=(2, 13))
    return sorted(facts.span(conflict.node).start.row for conflict in conflicts(facts) if conflict.raises)


COMPOSITE = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = {layer}
        self.last = nn.Linear(8, 8)

    def forward(self, index: torch.Tensor):
        x = torch.zeros(3, 2, 8)
        y = {call}
        return self.last(y)
"""


@pytest.mark.parametrize(
    ("layer", "call"),
    [
        ("nn.Transformer(8, 2, 1, 1, 8)", "self.inner(x, x)"),
        ("nn.Transformer(8, 2, 1, 1, 8)", "self.inner.encoder(x)"),
        ("nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 8), 1)", "self.inner(x)"),
        ("nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 8), 1)", "self.inner(x, x)"),
        ("nn.MultiheadAttention(8, 2)", "self.inner(x, x, x)[0]"),
    ],
)
def test_composite_layers_raise_for_their_inputs(layer: str, call: str) -> None:
    code = COMPOSITE.format(layer=layer, call=call)
    assert rows_of(code) == [13]
    namespace: dict[str, type[nn.Module]] = {}
    exec(compile(code, "net.py", "exec"), namespace)
    with pytest.raises(RuntimeError, match="dtype") as caught:
        namespace["Net"]().to(torch.bfloat16)(torch.arange(3))
    assert [entry.lineno + 1 for entry in caught.traceback if str(entry.path).endswith("net.py")] == [13]


STATES = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = {layer}
        self.last = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor):
        state = torch.zeros({shape})
        result = {call}
        return result, self.last(state)
"""


@pytest.mark.parametrize(
    ("layer", "shape", "call"),
    [
        ("nn.GRU(8, 8)", "1, 2, 8", "self.layer(x, state)"),
        ("nn.LSTM(8, 8)", "1, 2, 8", "self.layer(x, (state, state))"),
        ("nn.LSTMCell(8, 8)", "2, 8", "self.layer(x[0], (state, state))"),
    ],
)
def test_recurrent_layers_raise_for_their_states(layer: str, shape: str, call: str) -> None:
    code = STATES.format(layer=layer, shape=shape, call=call)
    assert rows_of(code) == [13]
    namespace: dict[str, type[nn.Module]] = {}
    exec(compile(code, "net.py", "exec"), namespace)
    for dtype in (torch.float16, torch.bfloat16):
        with pytest.raises(RuntimeError):
            namespace["Net"]().to(dtype)(torch.ones(3, 2, 8, dtype=dtype))


HELPED = """\
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.key = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor):
        q = x.float()
        k = self.key(x)
        {first}
        scores = self.scores(q, k)
        return scores

    def scores(self, q, k):
        return torch.matmul(q, k.mT)
"""


@pytest.mark.parametrize(
    ("first", "rows"),
    [
        ("weights = torch.matmul(q, k.mT)", [13]),
        ("weights = torch.matmul(k, k.mT)", [18]),
        ("weights = torch.matmul(q.float(), k.mT)", [13, 18]),
        ("if len(x) > 3: weights = torch.matmul(q, k.mT)", [13, 18]),
        ("weights = self.scores(q, k); torch.matmul(q, k.mT)", [13, 18]),
    ],
)
def test_what_is_only_called_behind_a_failure_of_the_same_operand_is_none_of_its_own(
    first: str, rows: list[int]
) -> None:
    assert rows_of(HELPED.format(first=first)) == rows


def told_in(code: str) -> list[int]:
    source = Source(Path("/project/net.py"), code.encode())
    facts = analyse(source, scenarios=(CONTROL, *DEFAULT_SCENARIOS), device="cuda", torch_version=(2, 13))
    told = [conflict for conflict in conflicts(facts) if conflict.standing.certainty is not Certainty.POSSIBLE]
    return sorted(facts.span(conflict.node).start.row for conflict in told)


GROUPS = """\
import numpy as np
import torch
from torch import nn


def corners(boxes):
    if isinstance(boxes, torch.Tensor):
        return torch.stack([boxes[..., 0], boxes[..., 1]], -1)
    elif isinstance(boxes, np.ndarray):
        return np.stack([boxes[..., 0], boxes[..., 1]], -1)
    raise ValueError(boxes)


def group(targets, count):
    boxes = torch.zeros(2, 4, 2)
    for i in range(2):
        boxes[i, :1] = targets[i]
    mask = torch.full((8, 8), 0, dtype=torch.float)
    return corners(boxes), mask


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x).relu() if i < 1 else layer(x)
        return x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = Head()
        self.proj = nn.Linear(2, 2)

    def forward(self, x, targets=None):
        points, boxes, mask = self.proj(x), None, None
        if self.training and targets is not None:
            boxes, mask = group(targets, 4)
        if boxes is not None:
            points = torch.concat([boxes, points], 1)
        position = {position}
        scores = x @ x.transpose(1, 2)
        if mask is not None:
            scores = scores + mask
        return scores.softmax(-1) @ x + position
"""


@pytest.mark.parametrize(("position", "told"), [("self.head(points).sum()", [29]), ("0", [49])])
def test_what_one_call_made_raises_where_it_is_used_first(position: str, told: list[int]) -> None:
    assert told_in(GROUPS.replace("{position}", position)) == told


WRITES = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, index: torch.Tensor, often: bool = False):
        y = self.proj(x)
        {first}
        y.scatter_(1, index, y.sum(1).softmax(-1))
        return y


class Other(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, index: torch.Tensor):
        y = self.proj(x)
        y.scatter_(1, index, y.mean(1).softmax(-1))
        return y
"""


@pytest.mark.parametrize(
    ("first", "told"),
    [
        ("y.scatter_(0, index, y.sum(0).softmax(-1))", [12, 24]),
        ("if often: y.scatter_(0, index, y.sum(0).softmax(-1))", [12, 13, 24]),
        ("for i in range(2): y.scatter_(0, index, y.sum(0).softmax(-1))", [12, 24]),
        ("y = y + 1", [13, 24]),
    ],
)
def test_what_surely_raises_before_hides_what_is_not_reached(first: str, told: list[int]) -> None:
    assert told_in(WRITES.replace("{first}", first)) == told


def test_another_tensor_of_its_own_dtype_is_not_reached_behind_the_first() -> None:
    code = COMPOSITE.format(layer="nn.Linear(8, 8)", call="self.inner(x) + self.last(torch.ones(3, 2, 8))")
    assert told_in(code) == [13]


ROTATED = """\
import torch
from torch import nn


class Rotated(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor):
        y = self.proj(x)
        {first}
        return self.proj(torch.ones(8, 8)) + y
"""


@pytest.mark.parametrize(
    ("first", "told"),
    [
        ("turn = torch.linalg.eigh(y.mT @ y)", []),
        ("turn = torch.linalg.eigh((y.mT @ y).float())", [13]),
        ("turn = torch.cdist(y, y, p=1)", []),
        ("turn = torch.cdist(y, y)", [13]),
    ],
)
def test_nothing_behind_a_missing_kernel_is_reached(first: str, told: list[int]) -> None:
    assert told_in(ROTATED.replace("{first}", first)) == told


NESTED = """\
import torch
from torch import nn


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)

    def forward(self, x):
        return self.proj({passed})


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.proj = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor):
        x = self.proj(x).float()
        return self.inner(x) + self.proj(x)
"""


@pytest.mark.parametrize(("passed", "told"), [("x", [11]), ("x.to(self.proj.weight.dtype)", [22])])
def test_what_one_cast_makes_fail_is_told_where_it_raises_first(passed: str, told: list[int]) -> None:
    assert told_in(NESTED.replace("{passed}", passed)) == told


ELSEWHERE = {
    "norms.py": """\
import torch
from torch import nn


class Rotate(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)

    def forward(self, x):
        return self.proj({turn} @ x.mT)
""",
    "starts.py": """\
import torch


def begin(x, wide):
    if wide:
        x = torch.zeros(8, 8)
    return x
""",
    "net.py": """\
import torch
from norms import Rotate
from starts import begin
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotate = Rotate()
        self.proj = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor):
        y = self.proj(x)
        {first}
        self.proj(torch.ones(8, 8))
        return y.pow(2).mean(-1)
""",
}


def codes_in(tmp_path: Path, turn: str, first: str) -> list[tuple[str, int]]:
    for name, text in ELSEWHERE.items():
        (tmp_path / name).write_text(text.replace("{turn}", turn).replace("{first}", first))
    rules = tuple(rule for rule in load_rules() if rule.code in ("AMP103", "AMP303"))
    result = check_file(tmp_path / "net.py", Options(rules=rules))
    return [(finding.code, finding.span.start.row) for finding in result.findings]


@pytest.mark.parametrize(
    ("turn", "first", "told"),
    [
        ("x", "y = self.rotate(y)", [("AMP103", 16)]),
        ("torch.eye(8)", "z = self.rotate(y)", []),
        ("torch.eye(8)", "z = self.rotate(y) if len(y) else y", [("AMP103", 16)]),
        ("x", "pass", [("AMP103", 16)]),
        ("x", "torch.linalg.inv(y)", []),
    ],
)
def test_what_raises_in_another_file_hides_what_is_behind_it(
    tmp_path: Path, turn: str, first: str, told: list[tuple[str, int]]
) -> None:
    assert codes_in(tmp_path, turn, first) == told


@pytest.mark.parametrize(("first", "rows"), [("pass", [16, 17]), ("self.rotate(z)", [17])])
def test_what_one_call_made_raises_in_another_file_first(tmp_path: Path, first: str, rows: list[int]) -> None:
    lines = f"z = begin(y, x.ndim)\n        {first}; self.proj(z)"
    assert codes_in(tmp_path, "x", lines) == [("AMP103", row) for row in rows]


@pytest.mark.parametrize(("first", "told"), [("y.sum()", [13]), ("self.proj(torch.ones(8, 8))", [])])
def test_numeric_claims_are_made_of_what_is_reached(first: str, told: list[int]) -> None:
    code = ROTATED.replace("{first}", first).replace(
        "return self.proj(torch.ones(8, 8)) + y", "return y / y.pow(2).mean(-1, keepdim=True).sqrt()"
    )
    rules = tuple(rule for rule in load_rules() if rule.code == "AMP303")
    result = check_file(Source(Path("/project/net.py"), code.encode()), Options(rules=rules))
    assert [finding.span.start.row for finding in result.findings] == told


REPEATED = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)

    def scale(self, y):
        return y / y.pow(2).mean(-1, keepdim=True).sqrt()

    def forward(self, x: torch.Tensor):
        self.proj(torch.ones(8, 8))
        return self.scale(self.proj.weight)

    def encode(self, x: torch.Tensor):
        {first}
        return self.scale(self.proj.weight)
"""


@pytest.mark.parametrize(("first", "told"), [("pass", [11]), ("self.proj(torch.ones(8))", [])])
def test_what_another_caller_reaches_is_told(first: str, told: list[int]) -> None:
    source = Source(Path("/project/net.py"), REPEATED.replace("{first}", first).encode())
    rules = tuple(rule for rule in load_rules() if rule.code in ("AMP103", "AMP303"))
    found = check_file(source, Options(rules=rules)).findings
    assert [finding.span.start.row for finding in found if finding.code == "AMP303"] == told


SEVERAL = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.last = nn.Linear(8, 8)

    def part(self, x, state):
        y = self.first(x)
        return y + self.last(state)

    def forward(self, index: torch.Tensor):
        wide, other, low = torch.zeros(8, 8), torch.ones(8, 8), self.first.weight
        if index.sum() > 1:
            return self.part(wide, other)
        return self.part(low, other if index.sum() else low)
"""


def test_an_operation_is_as_sure_as_where_it_is_reached() -> None:
    """The call in which both operands surely fail ends at the first one."""
    source = Source(Path("/project/net.py"), SEVERAL.encode())
    facts = analyse(source, scenarios=(CONTROL, *DEFAULT_SCENARIOS), device="cuda", torch_version=(2, 13))
    found = {facts.span(conflict.node).start.row: conflict.standing.certainty for conflict in conflicts(facts)}
    assert found == {12: Certainty.PROVEN, 13: Certainty.LIKELY}


LAYERED = """\
import torch
from torch import nn


class Block(nn.Module):
    def forward(self, x):
        y = x @ torch.eye(8)
        return x + y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return x
"""


def test_what_never_begins_hides_no_end() -> None:
    source = Source(Path("/project/net.py"), LAYERED.encode())
    facts = analyse(source, scenarios=(CONTROL, *DEFAULT_SCENARIOS), device="cuda", torch_version=(2, 13))
    assert early_ends(facts)[6] == {"fp16": 7, "bf16": 7, "bf16-mixed-params": 7}


@pytest.mark.parametrize(
    ("block", "early"),
    [
        ("if __name__ == '__main__':", {"fp16", "bf16", "bf16-mixed-params"}),
        ("if torch.cuda.is_available():", set()),
    ],
)
def test_what_runs_as_a_program_alone_hides_no_end(block: str, early: set[str]) -> None:
    source = Source(Path("/project/net.py"), f"{LAYERED}\n\n{block}\n    Block()(torch.ones(8, 8))\n".encode())
    facts = analyse(source, scenarios=(CONTROL, *DEFAULT_SCENARIOS), device="cuda", torch_version=(2, 13))
    assert early_ends(facts)[6].keys() == early
