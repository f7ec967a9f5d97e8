"""Each dtype event of a run lies on the line that caused it: CPU autocast in this process, emulated CUDA in a child."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import flow_toys
import pytest
import torch
from flow_toys import row
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch_process import with_torch

from amplint.verify.coverage import Coverage
from amplint.verify.event import Event
from amplint.verify.flow import DtypeFlow

if TYPE_CHECKING:
    from collections.abc import Callable

TOYS = str(Path(flow_toys.__file__).resolve())


class Recorded:
    """A run's events, from this process or the child's JSON."""

    def __init__(self, data: dict[str, Any], unseen: int) -> None:
        assert unseen == 0
        self.events = [Event.from_json(event) for event in data["events"]]
        self.failure = Event.from_json(data["failure"]) if data["failure"] else None
        self.nonfinite = Event.from_json(data["first_nonfinite"]) if data["first_nonfinite"] else None

    def at(self, mark: str, phase: str = "forward") -> list[tuple[str, set[str], str | None]]:
        """What happened on a marked line: kind, operand dtypes, result."""
        return [
            (event.kind, set(event.inputs), event.output)
            for event in self.events
            if (event.filename, event.row, event.phase) == (TOYS, row(mark), phase) and event.kind != "kept"
        ]

    def event(self, mark: str, kind: str, phase: str = "forward") -> Event:
        (found,) = (e for e in self.events if (e.row, e.kind, e.phase) == (row(mark), kind, phase))
        return found


@pytest.fixture(scope="module")
def child() -> dict[str, Any]:
    """Every toy under CUDA's policy, in a process that this one survives unchanged."""
    done = with_torch(Path(TOYS))
    assert done.status == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.fixture(params=["cpu", "cuda"])
def recorded(request: pytest.FixtureRequest, child: dict[str, Any]) -> Callable[[str], Recorded]:
    def get(name: str) -> Recorded:
        if request.param == "cuda":
            return Recorded(child[name], child[name]["unseen"])
        with contextlib.suppress(RuntimeError), DtypeFlow() as flow:
            flow_toys.TOYS[name]()
        return Recorded(json.loads(json.dumps(flow.to_json())), flow.unseen)

    return get


def test_casts_and_promotions_of_a_forward(recorded: Callable[[str], Recorded]) -> None:
    run = recorded("residual")
    assert run.at("linear") == [("autocast-cast", {"float32"}, "bfloat16")]
    assert run.event("linear", "autocast-cast").count == 3  # input, weight, bias
    assert run.event("linear", "autocast-cast").bytes == 2 * (4 * 8 + 8 * 8 + 8)
    assert run.at("buffer") == [("promotion", {"bfloat16", "float32"}, "float32")]
    assert run.event("buffer", "promotion").bytes == (4 - 2) * 4 * 8
    assert run.event("buffer", "promotion").operands == ("self", "other")
    assert run.at("to") == [("explicit-cast", {"float32"}, "bfloat16")]
    assert run.event("to", "explicit-cast").function == "to"
    assert run.at("softmax") == [("explicit-cast", {"bfloat16"}, "float32")]
    assert run.event("residual", "promotion").where == "Residual.forward"
    assert run.failure is None
    assert run.nonfinite is None


def test_built_in_backward_lies_on_the_line_of_its_forward(recorded: Callable[[str], Recorded]) -> None:
    run = recorded("residual")
    assert run.at("linear", "backward") == [("autocast-cast", {"bfloat16"}, "float32")]
    assert run.at("buffer", "backward") == [("promotion", {"float32"}, "bfloat16")]
    assert run.at("to", "backward") == [("explicit-cast", {"bfloat16"}, "float32")]
    matmul = next(e for e in run.events if e.op == "aten.mm.default" and e.phase == "backward")
    assert (matmul.row, matmul.function, matmul.count) == (row("linear"), "AddmmBackward0", 2)


@pytest.mark.parametrize(
    ("name", "mark", "op", "dtypes"),
    [
        ("index_write", "index_put_", "aten.index_put_.default", ("float32", "int64", "bfloat16")),
        ("in_place_matmul", "addmm_", "aten.addmm_.default", ("float32", "bfloat16", "float32")),
        ("undecorated_function", "function backward", "aten.mm.default", ("float32", "bfloat16")),
    ],
)
def test_failing_operation(
    recorded: Callable[[str], Recorded], name: str, mark: str, op: str, dtypes: tuple[str, ...]
) -> None:
    failure = recorded(name).failure
    assert failure is not None
    assert (failure.filename, failure.row, failure.op) == (TOYS, row(mark), op)
    assert sorted(failure.inputs) == sorted(dtypes)
    assert len(failure.shapes) == len(failure.operands) == len(dtypes)
    assert "dtype" in failure.note
    assert failure.phase == ("backward" if name == "undecorated_function" else "forward")


def test_failure_above_the_dispatcher_names_the_operands_of_the_source() -> None:
    with pytest.raises(RuntimeError), DtypeFlow() as flow:
        flow_toys.above_dispatch()
    failure = flow.failure
    assert failure is not None
    assert (failure.row, failure.op, failure.function) == (row("attention"), "", "scaled_dot_product_attention")
    assert dict(zip(failure.operands, failure.inputs, strict=True)) == {"q": "float32", "k": "float64"}


def test_conclude_takes_an_error_that_was_caught_inside() -> None:
    with DtypeFlow() as flow:
        try:
            flow_toys.above_dispatch()
        except RuntimeError as error:
            caught = error
    assert flow.failure is None
    flow.conclude(caught)
    assert flow.failure is not None
    assert flow.failure.row == row("attention")


def test_an_error_that_the_program_handled_is_no_failure(recorded: Callable[[str], Recorded]) -> None:
    run = recorded("caught")
    assert run.failure is None
    assert [event.kind for event in run.events].count("failed") == 1


@pytest.mark.parametrize(
    ("name", "mark", "note"),
    [
        ("overflow", "overflow", "overflow: 90601 is beyond float16"),
        ("in_place_overflow", "in place overflow", "overflow: 90000 is beyond float16"),
        ("undefined", "undefined", "NaN in float32 from finite operands"),
        ("mask_constant", "mask constant", "a constant below float16's least value (-65504) became -inf"),
        ("dropout", "dropout", "overflow"),
    ],
)
def test_where_inf_and_nan_come_from(recorded: Callable[[str], Recorded], name: str, mark: str, note: str) -> None:
    found = recorded(name).nonfinite
    assert found is not None
    assert (found.filename, found.row) == (TOYS, row(mark))
    assert note in found.note


def test_deliberate_infinities_are_none(recorded: Callable[[str], Recorded]) -> None:
    assert recorded("masks").nonfinite is None


def test_a_computed_overflow_goes_before_a_mask_constant() -> None:
    with DtypeFlow() as flow:
        flow_toys.mask_constant()
        flow_toys.overflow()
    assert flow.first_nonfinite is not None
    assert flow.first_nonfinite.row == row("overflow")


def test_the_run_is_not_changed() -> None:
    """Bitwise the same results, gradients, dtypes and random numbers, and the same error."""

    def run(watched: bool) -> list[torch.Tensor]:
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(16, 16), nn.Dropout(0.5), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4))
        x = torch.randn(8, 16)
        with DtypeFlow() if watched else contextlib.nullcontext(), torch.autocast("cpu", dtype=torch.bfloat16):
            huge = nn.functional.dropout(torch.full((64,), 6e4, dtype=torch.float16), 0.5)
            loss = module(x).float().sum()
            loss.backward()
        return [loss, huge, torch.rand(3), *(p.grad for p in module.parameters() if p.grad is not None)]

    plain, watched = run(False), run(True)
    assert len(plain) == len(watched) > 6
    for a, b in zip(plain, watched, strict=True):
        assert a.dtype == b.dtype
        assert torch.equal(a, b)


def encode(*, watched: bool, masked: bool) -> tuple[str, DtypeFlow]:
    """A TransformerEncoder's fast path under CPU autocast: the error's text, or the result's dtype."""
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 1).eval()
    mask = torch.tensor([[False] * 4, [False] * 2 + [True] * 2]) if masked else None
    flow = DtypeFlow()
    with flow if watched else contextlib.nullcontext(), torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        try:
            result = encoder(torch.randn(2, 4, 16), src_key_padding_mask=mask)
        except RuntimeError as error:
            flow.conclude(error)
            return str(error), flow
    return str(result.dtype), flow


@pytest.mark.parametrize("masked", [False, True])
def test_the_encoder_fast_path_does_what_it_does_unwatched(masked: bool) -> None:
    """A function mode would switch it off; below a dispatch mode its kernel would find autocast off."""
    plain, _ = encode(watched=False, masked=masked)
    watched, flow = encode(watched=True, masked=masked)
    assert plain == watched
    assert any(event.op == "aten._transformer_encoder_layer_fwd.default" for event in flow.events)
    failed = not plain.startswith("torch.")
    assert (flow.failure is not None) == failed
    if flow.failure is not None:
        assert flow.failure.op == "aten._transformer_encoder_layer_fwd.default"


def test_custom_operators_meet_autocast_as_they_do_unwatched() -> None:
    library = torch.library.Library("amplint_test_flow", "DEF")
    library.define("product(Tensor x) -> Tensor")
    library.impl("product", lambda x: torch.mm(x, x), "CPU")
    x = torch.ones(2, 2)
    with DtypeFlow() as flow:
        outside = torch.ops.amplint_test_flow.product(x)
        with torch.autocast("cpu", torch.bfloat16):
            inside = torch.ops.amplint_test_flow.product(x)
            with torch.autocast("cpu", enabled=False):
                off = torch.ops.amplint_test_flow.product(x)
    assert [outside.dtype, inside.dtype, off.dtype] == [torch.float32, torch.bfloat16, torch.float32]
    assert "op-output" in {event.kind for event in flow.events}
    assert flow.unseen == 0


@pytest.mark.parametrize("reentrant", [False, True])
def test_recomputed_and_twice_differentiated_lines(reentrant: bool) -> None:
    module, x = flow_toys.Residual(), torch.randn(4, 8, requires_grad=True)
    with DtypeFlow() as flow:
        with torch.autocast("cpu", torch.bfloat16):
            y = checkpoint(module, x, use_reentrant=reentrant)
        y.sum().backward()
    recomputed = [e for e in flow.events if (e.row, e.kind, e.phase) == (row("linear"), "autocast-cast", "backward")]
    assert {e.function for e in recomputed} == {"linear", "ToCopyBackward0"}

    with DtypeFlow() as flow:
        (gradient,) = torch.autograd.grad((module(x) ** 2).sum(), x, create_graph=True)
        gradient.sum().backward()
    assert flow.unseen == 0
    assert {e.filename for e in flow.events} <= {TOYS, __file__}


def test_exceptions_pass_and_hooks_are_put_back() -> None:
    def profiler(*_: object) -> None:
        """Someone else's."""

    class Unusual(Exception):
        pass

    error = Unusual("mine")
    sys.setprofile(profiler)
    try:
        flow = DtypeFlow()
        with pytest.raises(Unusual) as raised, flow:  # noqa: PT012
            torch.ones(2) + 1
            raise error
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(None)
    assert raised.value is error
    assert flow.failure is not None
    assert (flow.failure.note, flow.failure.op) == ("mine", "")


def test_the_innermost_line_of_user_code_counts(tmp_path: Path) -> None:
    inner = tmp_path / "inner.py"
    inner.write_text("def add(x, y):\n    return x + y\n")
    outer = tmp_path / "outer.py"
    outer.write_text("def call(add, x, y):\n    z = x\n    return add(z, y)\n")
    space: dict[str, Any] = {}
    for path in (inner, outer):
        exec(compile(path.read_text(), str(path), "exec"), space)
    x = torch.ones(2, requires_grad=True)
    with DtypeFlow() as flow:
        space["call"](space["add"], x.bfloat16(), x).sum().backward()
    promoted = [(e.filename, e.row) for e in flow.events if e.kind == "promotion"]
    assert promoted == [(str(inner), 2)] * 2  # the addition, and its backward


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amplint.verify.flow._MAX_EVENTS", 1)
    monkeypatch.setattr("amplint.verify.sites._MAX_NODES", 4)
    with DtypeFlow() as flow:
        x = torch.ones(2, requires_grad=True)
        for _ in range(40):
            x = x * 2
        (x + 1).sum().backward()
    assert len(flow.events) == 1
    assert flow.dropped > 40
    assert len(flow._nodes._made) <= 4


def test_repeated_lines_are_counted() -> None:
    x, y = torch.ones(4), torch.ones(4, dtype=torch.bfloat16)
    with DtypeFlow() as flow:
        for _ in range(5):
            x + y
    (event,) = flow.events
    assert (event.count, event.bytes) == (5, 5 * 4 * 2)


SOURCE = """\
def f(x):
    if x:
        return 1
    y = [
        i for i in range(2)
    ]
    return y

def g():
    f(True)
"""


def test_coverage(tmp_path: Path) -> None:
    path, other = tmp_path / "covered.py", tmp_path / "other.py"
    path.write_text(SOURCE)
    other.write_text("def h():\n    return 0\n")
    space: dict[str, Any] = {}
    for file in (path, other):
        exec(compile(file.read_text(), str(file), "exec"), space)
    for _ in range(2):  # the second one starts afresh
        with Coverage([path]) as coverage:
            space["f"](True)
            space["h"]()
        space["f"](False)
        assert coverage.lines(path) == {2, 3}
        assert coverage.lines(other) == frozenset()
    with Coverage([str(path)]) as coverage:
        thread = threading.Thread(target=space["g"])
        thread.start()
        thread.join()
    assert coverage.lines(str(path)) == {2, 3, 10}


def test_coverage_puts_a_tracer_back() -> None:
    def tracer(*_: object) -> None:
        """Someone else's."""

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        with pytest.raises(ZeroDivisionError), Coverage([__file__]):
            1 / 0  # noqa: B018
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)
