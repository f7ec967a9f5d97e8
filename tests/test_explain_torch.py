"""The catalogue of error texts against torch: what it raises over dtypes is recognised, other errors are not."""

from __future__ import annotations

import itertools
import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch.nn.functional as F
from rule_examples import Case, every_bad, ids
from torch import nn
from torch.testing._internal.common_methods_invocations import op_db

import amplint.data
from amplint.data.forms import FORMS
from amplint.examples.running import program, run_here
from amplint.explain.catalogue import recognise
from amplint.rule_base import Evidence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Arguments = tuple[tuple[Any, ...], dict[str, Any]]

HALF, LOW, FULL, WIDE = torch.float16, torch.bfloat16, torch.float32, torch.float64
OPS = json.loads((Path(amplint.data.__file__).parent / "ops.json").read_text())["ops"]
STRICT = sorted(name for name, op in OPS.items() if op.keys() & {"strict", "one_way", "strict_without"})
UNSUPPORTED = sorted(name for name, op in OPS.items() if "cpu" in op.get("unsupported", {}))
CALLS = 2
"""Calls of each operation that are tried."""


def resolve(name: str) -> Any:
    value: Any = torch
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


def calls(name: str) -> Iterator[Arguments]:
    """Float32 arguments for an operation: of the forms, else of OpInfo's samples for its base name."""
    forms = [build() for form, build in FORMS if form == name]
    if forms:
        yield from forms
        return
    base = name.rpartition(".")[2].rstrip("_")
    for op in op_db:
        if op.name.rpartition(".")[2] == base and torch.float32 in op.dtypes:
            samples = op.sample_inputs("cpu", FULL, requires_grad=False)
            yield from (((s.input, *s.args), s.kwargs) for s in itertools.islice(samples, CALLS))
            return


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the floating tensors are in nested arguments."""
    if isinstance(value, torch.Tensor):
        if value.is_floating_point():
            yield path
    elif isinstance(value, (tuple, list, dict)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, (*path, key))


def recast(value: Any, dtypes: dict[tuple[Any, ...], torch.dtype], path: tuple[Any, ...] = ()) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone().to(dtypes.get(path, value.dtype))
    if isinstance(value, dict):
        return {key: recast(item, dtypes, (*path, key)) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(recast(item, dtypes, (*path, key)) for key, item in enumerate(value))
    return value


def raised(
    function: Callable[..., Any], arguments: Arguments, dtypes: dict[tuple[Any, ...], torch.dtype]
) -> str | None:
    args, kwargs = recast(arguments, dtypes)
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(*args, **kwargs)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return None


def mixtures(found: list[tuple[Any, ...]]) -> Iterator[dict[tuple[Any, ...], torch.dtype]]:
    """Each operand unlike the others, in half precision and in float64, and all in half precision."""
    for low in (LOW, HALF):
        yield dict.fromkeys(found, low)
        for one in found[:4] if len(found) > 1 else ():
            yield {one: low}
            yield {other: low for other in found if other != one}
    if len(found) > 1:
        yield {found[0]: WIDE}


def texts(name: str) -> set[str]:
    """What an operation raises over dtypes where it runs in float32."""
    function = resolve(name)
    errors = set()
    for arguments in itertools.islice(calls(name), CALLS):
        if raised(function, arguments, {}) is None:
            found = list(leaves(arguments))
            errors |= {error for dtypes in mixtures(found) if (error := raised(function, arguments, dtypes))}
    return errors


def test_every_text_of_the_strict_operations_is_recognised() -> None:
    found = {name: texts(name) for name in STRICT}
    raising = {name: errors for name, errors in found.items() if errors}
    unknown = sorted({error for errors in raising.values() for error in errors if not recognise(error)})
    recognised = [name for name, errors in raising.items() if all(map(recognise, errors))]
    count = len(set().union(*raising.values()))
    print(f"{len(STRICT)} strict operations: {len(raising)} raised, {len(recognised)} recognised; {count} texts")
    assert unknown == []
    assert len(raising) >= 140


def test_every_text_of_unsupported_operations_is_recognised() -> None:
    names = UNSUPPORTED[::4]
    found = {name: texts(name) for name in names}
    raising = {name: errors for name, errors in found.items() if errors}
    unknown = sorted({error for errors in raising.values() for error in errors if not recognise(error)})
    print(f"{len(names)} operations without a half kernel: {len(raising)} raised")
    assert unknown == []
    assert len(raising) >= 20


def full(*shape: int) -> torch.Tensor:
    return torch.ones(*shape)


def low(*shape: int) -> torch.Tensor:
    return torch.ones(*shape, dtype=LOW)


ROWS = torch.tensor([0, 1])
OPERANDS: list[tuple[Callable[[], object], str, dict[str, str]]] = [
    (lambda: nn.Linear(4, 4)(low(2, 4)), "linear-operands", {"input": "bfloat16", "weight": "float32"}),
    (lambda: nn.Linear(4, 4).half()(full(2, 4)), "linear-operands", {"input": "float32", "weight": "float16"}),
    (lambda: low(2, 3) @ full(3, 2), "matmul-operands", {"first": "bfloat16", "second": "float32"}),
    (lambda: F.linear(low(2, 4), low(3, 4), full(3)), "addmm-self", {"self": "float32", "mat2": "bfloat16"}),
    (lambda: torch.bmm(low(1, 2, 3), full(1, 3, 2)), "scalar-type", {"chosen": "bfloat16", "found": "float32"}),
    (lambda: nn.Conv1d(2, 2, 1)(low(1, 2, 4)), "conv-operands", {"input": "bfloat16", "parameter": "float32"}),
    (lambda: nn.LSTM(4, 4)(low(2, 1, 4)), "rnn-input", {"input": "bfloat16", "weight": "float32"}),
    (
        lambda: F.scaled_dot_product_attention(full(1, 1, 2, 4), low(1, 1, 2, 4), low(1, 1, 2, 4)),
        "attention-operands",
        {"query": "float32", "key": "bfloat16", "value": "bfloat16"},
    ),
    (
        lambda: F.scaled_dot_product_attention(*[full(1, 1, 2, 4)] * 3, attn_mask=low(2, 2)),
        "attention-mask",
        {"mask": "bfloat16", "query": "float32"},
    ),
    (
        lambda: full(4, 4).index_put_((ROWS,), low(2, 4)),
        "index-write",
        {"destination": "float32", "source": "bfloat16"},
    ),
    (
        lambda: full(4, 4).index_add_(0, ROWS, low(2, 4)),
        "indexed-accumulation",
        {"destination": "float32", "source": "bfloat16"},
    ),
    (lambda: torch.lerp(full(4), low(4), 0.5), "no-promotion", {"first": "float32", "second": "bfloat16"}),
    (lambda: torch.linalg.solve(full(2, 2), low(2, 2)), "linalg-operands", {"first": "float32", "second": "bfloat16"}),
    (lambda: torch.mm(low(2, 2), low(2, 2), out=full(2, 2)), "out-dtype", {"factors": "bfloat16", "out": "float32"}),
    (
        lambda: low(4).masked_fill(torch.ones(4) > 0, torch.finfo(FULL).min),
        "fill-overflow",
        {"tensor": "bfloat16"},
    ),
    (lambda: torch.linalg.inv(low(2, 2)), "no-kernel", {"input": "bfloat16"}),
    (lambda: torch.linalg.qr(low(2, 2)), "no-cpu-kernel", {"input": "bfloat16"}),
    (lambda: low(2).numpy(), "numpy-bfloat16", {"tensor": "bfloat16"}),
    (lambda: F.embedding(low(2), full(3, 4)), "low-precision-index", {"index": "bfloat16"}),
    (lambda: nn.Linear(4, 4)(torch.ones(2, 4).long()), "integer-operand", {"first": "int64", "second": "float32"}),
]


@pytest.mark.parametrize(("call", "family", "dtypes"), OPERANDS, ids=[family for _, family, _ in OPERANDS])
def test_operands_are_told_apart(call: Callable[[], object], family: str, dtypes: dict[str, str]) -> None:
    with pytest.raises((RuntimeError, TypeError, ValueError, NotImplementedError)) as error:
        call()
    match, *others = recognise(str(error.value))
    assert (match.family, dict(match.dtypes), others) == (family, dtypes, [])


def _ragged() -> object:
    return torch.tensor([[1, 2], [3]])


def _twice() -> object:
    x = torch.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    return y.backward()


def _inplace() -> object:
    x = torch.ones(2, requires_grad=True)
    return x.add_(1)


def _no_grad() -> object:
    return torch.ones(2).sum().backward()


def _missing_key() -> object:
    return nn.Linear(2, 2).load_state_dict({"weight": torch.ones(2, 2)})


def _shape_state() -> object:
    return nn.Linear(2, 2).load_state_dict({"weight": torch.ones(3, 2), "bias": torch.ones(2)})


OTHERWISE: list[Callable[[], object]] = [
    lambda: full(2, 3) @ full(2, 3),
    lambda: nn.Linear(4, 4)(full(2, 3)),
    lambda: torch.bmm(full(2, 3, 4), full(2, 3, 4)),
    lambda: torch.einsum("ij,jk->ik", full(2, 3), full(2, 3)),
    lambda: nn.Conv2d(3, 4, 3)(full(1, 4, 8, 8)),
    lambda: nn.Conv2d(3, 4, 9)(full(1, 3, 4, 4)),
    lambda: F.scaled_dot_product_attention(full(1, 2, 3, 4), full(1, 2, 3, 5), full(1, 2, 3, 4)),
    lambda: nn.LayerNorm(5)(full(2, 4)),
    lambda: nn.BatchNorm1d(4)(full(1, 4)),
    lambda: nn.MultiheadAttention(5, 2),
    lambda: nn.LSTM(4, 4)(full(2, 1, 5)),
    lambda: nn.Embedding(3, 4)(torch.tensor([7])),
    lambda: full(2, 3) + full(3, 2),
    lambda: full(2).view(3),
    lambda: full(2).reshape(5),
    lambda: full(2)[5],
    lambda: full(2, 3).gather(1, torch.tensor([[9]])),
    lambda: full(2, 3).index_select(0, torch.tensor([5])),
    lambda: full(4, 4).index_add_(0, ROWS, full(3, 4)),
    lambda: full(4)[ROWS].index_put_((torch.tensor([9]),), full(1)),
    lambda: torch.cat([full(2, 3), full(3, 2)]),
    lambda: torch.stack([full(2), full(3)]),
    lambda: torch.linalg.inv(torch.zeros(2, 2)),
    lambda: torch.linalg.cholesky(-torch.eye(2)),
    lambda: F.cross_entropy(full(2, 3), torch.tensor([0, 7])),
    lambda: F.cross_entropy(full(2, 3), torch.tensor([0, 1, 2])),
    lambda: F.mse_loss(full(2, 3), full(3, 2)),
    lambda: F.binary_cross_entropy(full(2) * 2, full(2)),
    lambda: full(2).expand(3),
    lambda: full(2, 3).permute(0, 1, 2),
    lambda: full(2).to("meta") + full(2),
    lambda: nn.Linear(2, 2).to("meta")(full(1, 2)),
    lambda: torch.device("nowhere"),
    lambda: full(2).item(),
    lambda: full(2).numpy_(),  # type: ignore[attr-defined]
    lambda: torch.ones(2, requires_grad=True).numpy(),
    lambda: torch.load("/nonexistent/checkpoint.pt"),
    lambda: {}["missing"],
    lambda: [][1],
    lambda: torch.tensor(["a"]),
    lambda: nn.Dropout(2.0),
    lambda: torch.optim.SGD([], 0.1),
    lambda: torch.ones(-1),
    lambda: torch.arange(0, 1, -1),
    lambda: torch.multinomial(torch.zeros(3), 5),
    lambda: F.interpolate(full(2, 3), scale_factor=2),
    lambda: F.one_hot(torch.tensor([5]), 3),
    lambda: F.grid_sample(full(1, 1, 2, 2), full(1, 2, 2, 3), align_corners=False),
    lambda: torch.jit.load("/nonexistent.pt"),
    _ragged,
    _twice,
    _inplace,
    _no_grad,
    _missing_key,
    _shape_state,
]
FROM_ELSEWHERE = [
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB",
    "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
    "RuntimeError: Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same",
    "RuntimeError: Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same or input "
    "should be a MKLDNN tensor and weight is a dense tensor",
    "RuntimeError: CUDA error: device-side assert triggered",
    "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1234, unhandled system error",
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x4)",
    "ModuleNotFoundError: No module named 'flash_attn'",
    "NotImplementedError: \"cross_entropy_loss_out\" not implemented for 'Long'",
    "RuntimeError: value cannot be converted to type int8_t without overflow",
    "torch.utils.checkpoint.CheckpointError: torch.utils.checkpoint: Recomputed values for the following tensors have "
    "different metadata than during the forward pass.\ntensor at position 0:\n"
    "saved metadata: {'shape': torch.Size([2, 2]), 'dtype': torch.float32, 'device': device(type='cpu')}\n"
    "recomputed metadata: {'shape': torch.Size([2]), 'dtype': torch.float32, 'device': device(type='cpu')}",
    "epoch 3 train loss: 0.1234 lr 1e-4",
    "    best_loss = float('inf')",
    "    loss = math.inf",
    "    losses = []  # nan-safe",
    "the best validation loss information is in log.txt",
    "x did not match y",
]


@pytest.mark.filterwarnings("ignore")
def test_errors_that_dtypes_have_no_part_in_are_not_recognised() -> None:
    texts = list(FROM_ELSEWHERE)
    for call in OTHERWISE:
        with pytest.raises(Exception) as error:  # noqa: PT011
            call()
        texts.append(f"{type(error.value).__name__}: {error.value}")
    print(f"{len(texts)} errors of other kinds")
    assert {text: recognise(text) for text in texts if recognise(text)} == {}


RUNNING = [
    case
    for case in every_bad()
    if case.rule.evidence is Evidence.RUN and case.example.scenario and not case.example.emulated
]


@pytest.mark.parametrize("case", RUNNING, ids=ids(RUNNING))
def test_errors_of_the_rules_examples_lead_to_the_rules(case: Case) -> None:
    rule, example = case.rule, case.example
    with pytest.raises(Exception) as error:  # noqa: PT011
        run_here(program(case, example.source))
    text = f"{type(error.value).__name__}: {error.value}"
    if text.startswith("AssertionError"):
        return  # the example checks a silent loss by itself; torch prints nothing
    assert rule.code in {code for match in recognise(text) for code in match.codes}, text
