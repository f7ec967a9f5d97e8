"""Which torch callables are measured, and on which calls: OpInfo's samples, the forms, and plain unary calls."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import sys
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.testing._internal import common_cuda

from amplint.data._calls import Call, Failure, Target, bind, tensors_in
from amplint.data._refusals import refuses_itself, refusing_parts
from amplint.data._sizes import runs, runs_large
from amplint.data.forms import FORMS

#: OpInfo declares some CUDA dtypes only where the GPU has them; the table is about a recent one.
for _gate in [name for name in vars(common_cuda) if name.startswith(("SM", "PLATFORM_SUPPORTS"))]:
    if "FP8" not in _gate and "MX" not in _gate and "CK" not in _gate:
        setattr(common_cuda, _gate, True)

from torch.testing._internal.common_methods_invocations import op_db as op_db  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

NAMESPACES = (
    *("torch", "torch.Tensor", "torch.nn.functional", "torch.nn.grad"),
    *("torch.linalg", "torch.fft", "torch.special"),
)
OPINFO_PREFIXES = ("", "nn.functional", "linalg", "fft", "special")
READ_SAMPLES, KEEP_CALLS, LARGEST = 150, 8, 20_000
LOW = {torch.float16: "float16", torch.bfloat16: "bfloat16"}
#: OpInfo calls these through a wrapper whose order of arguments the function only accepts for compatibility.
NOT_SAMPLED = {"nn.functional.embedding_bag"}
#: Tensor methods that act on the process, on a device that is not there, or on the tensor's storage.
NOT_CALLED = {
    "apply_", "backward", "cuda", "hpu", "ipu", "map_", "map2_", "module_load", "mtia", "pin_memory", "record_stream",
    "register_hook", "register_post_accumulate_grad_hook", "reinforce", "requires_grad_", "retain_grad", "set_",
    "share_memory_", "storage", "storage_type", "to_mkldnn", "xpu", "to_sparse", "to_sparse_coo", "to_sparse_csr",
    "to_sparse_csc", "rename", "rename_", "untyped_storage", "from_file", "to_dense", "data_ptr",
}  # fmt: skip


def resolve(name: str) -> Any:
    """The callable of a qualified name, or None."""
    value: Any = torch
    for part in name.split(".")[1:]:
        value = getattr(value, part, None)
    return value if callable(value) and not isinstance(value, type) else None


def public_names() -> list[str]:
    """Every public callable of the namespaces that the table covers."""
    names = []
    for space in NAMESPACES:
        owner: Any = torch
        for part in space.split(".")[1:]:
            owner = getattr(owner, part)
        names += [f"{space}.{n}" for n in dir(owner) if not n.startswith("_") and resolve(f"{space}.{n}")]
    return names


def attribute_names() -> list[str]:
    """Every public attribute of a tensor that is no method."""
    names = [n for n in dir(torch.Tensor) if not n.startswith("_")]
    return [f"torch.Tensor.{n}" for n in names if not callable(getattr(torch.Tensor, n, None))]


def _read_attribute(name: str) -> Call:
    """Reading an attribute, of a tensor that has a gradient if it can."""
    attribute = name.rpartition(".")[2]

    def read(tensor: torch.Tensor) -> Any:
        if attribute == "grad" and tensor.is_floating_point():
            torch.autograd.backward([tensor.requires_grad_().sum()])
        return getattr(tensor, attribute)

    matrix = torch.eye(3, dtype=torch.complex64 if attribute == "imag" else torch.float32)
    return Call(read, (matrix,), {}, ("self",), ("self",))


def _spellings(op: Any) -> tuple[list[str], list[str]]:
    """Names the operation surely has, and the same base name elsewhere, which may be another function."""
    sure: list[str] = []
    maybe: list[str] = []
    for name in [op.name, *[alias.name for alias in op.aliases]]:
        prefix, _, base = name.rpartition(".")
        if prefix not in OPINFO_PREFIXES or base.startswith("_") or op.name in NOT_SAMPLED:
            continue
        own = f"torch.{prefix}" if prefix else "torch"
        sure += [f"{own}.{base}", f"{own}.{base}_"]
        (maybe if prefix else sure).extend([f"torch.Tensor.{base}", f"torch.Tensor.{base}_"])
        maybe += [f"{space}.{base}{mark}" for space in ("torch", "torch.nn.functional") for mark in ("", "_")]
    return sure, maybe


def _unsupported(ops: Iterable[Any]) -> dict[str, list[str]]:
    """Low-precision dtypes that OpInfo declares for none of the variants, where float32 is declared.

    A declaration that leaves out on the CPU too what runs there is about some arguments only.
    """
    table: dict[str, list[str]] = {}
    known = list(ops)
    for device in ("cuda", "cpu"):
        declared = set().union(*[op.supported_dtypes(device) for op in known])
        lacking = {dtype: name for dtype, name in LOW.items() if dtype not in declared}
        found = [n for dtype, n in lacking.items() if not any(_runs_but_for_parts(op, dtype) for op in known)]
        if torch.float32 in declared and found:
            table[device] = found
    return table


def _runs_but_for_parts(op: Any, dtype: torch.dtype) -> bool:
    """Whether some samples run on the CPU in a dtype that OpInfo does not declare, and a part refuses all others.

    ``linalg.matrix_power`` multiplies: only a negative power takes ``linalg_inv_ex``, which has no such kernel.
    """
    if dtype in op.supported_dtypes("cpu") or torch.float32 not in op.dtypes:
        return False
    torch.manual_seed(0)
    read = itertools.islice(op.sample_inputs("cpu", torch.float32, requires_grad=False), READ_SAMPLES)
    calls = [Call(op.op, (one.input, *one.args), one.kwargs, (), ()) for one in read]
    calls = [call for call in calls if _usable((call.args, call.kwargs))]
    refused = [call for call in calls if not runs(call, dtype)]
    parts = [refusing_parts([call], dtype) for call in refused]
    others = [[found for part in one if op not in (found := _declared_as(part))] for one in parts]
    return 0 < len(refused) < len(calls) and all(found and all(found) for found in others)


def _declared_as(part: str) -> list[Any]:
    """The operations that OpInfo declares by the name of an ATen operation."""
    return [op for op in op_db if (op.aten_name or op.name.replace(".", "_")) == part]


@cache
def _support_history() -> dict[str, dict[str, dict[str, str]]]:
    text = Path(__file__).with_name("support_history.json").read_text()
    ops: dict[str, dict[str, dict[str, str]]] = json.loads(text)["ops"]
    return ops


def _unsupported_until(ops: Iterable[Any]) -> dict[str, dict[str, str]]:
    """The last release that is known to lack a low-precision dtype which this one has: the same for all variants."""
    known = [_support_history().get(op.name, {}) for op in ops]
    table: dict[str, dict[str, str]] = {}
    for device in ("cuda", "cpu"):
        for dtype in LOW.values():
            releases = {entry.get(device, {}).get(dtype) for entry in known}
            release = releases.pop()
            if release is not None and not releases:
                table.setdefault(device, {})[dtype] = release
    return table


def _unsupported_parts(calls: list[Call]) -> dict[str, list[str]]:
    """What a function that OpInfo does not declare lacks: what a part of it lacks that refuses it on the CPU.

    ``nn.init.orthogonal_`` is such a function, and ``linalg_qr`` its part.
    """
    table: dict[str, list[str]] = {}
    for dtype, name in LOW.items():
        parts = refusing_parts(calls, dtype) if calls else set()
        declared = [op for part in parts for op in _declared_as(part)]
        for device, lacking in (_unsupported(declared) if declared else {}).items():
            if name in lacking:
                table.setdefault(device, []).append(name)
    return table


def kind_of(value: Any) -> str:
    """Arguments of the same kind make samples alike."""
    if isinstance(value, torch.Tensor):
        return f"tensor{min(value.dim(), 1)}{value.is_floating_point()}"
    return repr(value) if isinstance(value, (bool, str, type(None))) else type(value).__name__


def _usable(arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> bool:
    tensors = [*tensors_in(arguments[0]), *tensors_in(arguments[1])]
    plain = all(x.layout is torch.strided and not x.is_nested for x in tensors)
    return plain and all(x.numel() > 0 for x in tensors) and sum(x.numel() for x in tensors) <= LARGEST


def samples(op: Any) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Up to KEEP_CALLS unlike samples: the ones with most tensors of each kind come first."""
    dtype = next((d for d in (torch.float32, torch.int64, torch.bool, torch.complex64) if d in op.dtypes), None)
    if dtype is None:
        return []
    found: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {}
    torch.manual_seed(0)
    random.seed(0)
    with contextlib.suppress(Exception):
        for sample in itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), READ_SAMPLES):
            kwargs = {key: value for key, value in sample.kwargs.items() if key not in ("device", "out", "dtype")}
            arguments = ((sample.input, *sample.args), kwargs)
            if _usable(arguments):
                key = repr([kind_of(a) for a in arguments[0]] + sorted(f"{k}{kind_of(v)}" for k, v in kwargs.items()))
                found.setdefault(key, arguments)
    ranked = sorted(found.values(), key=lambda a: -len([*tensors_in(a[0]), *tensors_in(a[1])]))
    half = KEEP_CALLS // 2
    return ranked if len(ranked) <= KEEP_CALLS else ranked[:half] + ranked[-half:]


def _bound(name: str, arguments: Iterable[tuple[tuple[Any, ...], dict[str, Any]]]) -> list[Call]:
    function = resolve(name)
    if function is None:
        return []
    calls = []
    for args, kwargs in arguments:
        if name.startswith("torch.Tensor.") and not isinstance(args[0], torch.Tensor):
            continue
        call = bind(name, function, args, kwargs)
        if call is not None:
            calls.append(call)
    return calls


def _from_opinfo(targets: dict[str, Target], wanted: Callable[[str], bool]) -> None:
    declared: dict[str, list[Any]] = {}
    second_choice: list[tuple[list[str], Any, list[Any]]] = []
    for op in op_db:
        sure, maybe = _spellings(op)
        chosen = [name for name in [*sure, *maybe] if wanted(name) and resolve(name)]
        if not chosen:
            continue
        arguments = samples(op)
        for name in dict.fromkeys(sure):
            calls = _bound(name, arguments) if name in chosen else []
            if calls:
                targets.setdefault(name, Target(name)).calls += calls
                declared.setdefault(name, []).append(op)
        second_choice.append(([name for name in maybe if name in chosen], op, arguments))
    for names, op, arguments in second_choice:
        for name in names:
            if name not in targets or op in declared.get(name, []):
                calls = _bound(name, arguments) if name not in targets else []
                if calls:
                    targets[name] = Target(name, calls)
                    declared[name] = [op]
    for name, ops in declared.items():
        targets[name].unsupported = _unsupported(ops)
        targets[name].unsupported_until = _unsupported_until(ops)
        lacking = {dtype for dtypes in targets[name].unsupported.values() for dtype in dtypes}
        targets[name].refused_with = _refused_with(name, ops) if not lacking else {}
        targets[name].only_with = runs_large(targets[name].calls, [d for d, known in LOW.items() if known in lacking])
    for name in targets.keys() - declared.keys():
        targets[name].unsupported = _unsupported_parts(targets[name].calls)


def _refused_with(name: str, ops: Iterable[Any]) -> dict[str, list[float | str]]:
    """Numbers and words with which torch refuses low precision before any kernel runs, whatever else is passed.

    ``linalg.matrix_norm`` does so where it would factorise.
    """
    refused: dict[tuple[str, float | str], bool] = {}
    torch.manual_seed(0)
    for op in (op for op in ops if torch.float32 in op.dtypes):
        read = itertools.islice(op.sample_inputs("cpu", torch.float32, requires_grad=False), READ_SAMPLES)
        arguments = [((one.input, *one.args), one.kwargs) for one in read]
        for call in _bound(name, filter(_usable, arguments)):
            given = [
                (key, v) for key, v in call.named() if isinstance(v, (int, float, str)) and not isinstance(v, bool)
            ]
            always = bool(given) and all(refuses_itself(call, dtype) for dtype in LOW)
            refused.update({one: always and refused.get(one, True) for one in given})
    found: dict[str, list[float | str]] = {}
    for (parameter, value), always in refused.items():
        if always:
            found.setdefault(parameter, []).append(value)
    return {parameter: sorted(values, key=str) for parameter, values in found.items()}


def _plain_unary(name: str) -> list[Call]:
    """The callable on one square matrix, for Tensor methods and functions whose first argument is a tensor."""
    space, _, base = name.rpartition(".")
    if base in NOT_CALLED or base.startswith(("set_", "has_", "sparse", "quantize", "cudnn")):
        return []
    if space != "torch.Tensor":
        schemas = torch._C._jit_get_schemas_for_operator(f"aten::{base}")
        if not any(s.arguments and str(s.arguments[0].type) == "Tensor" for s in schemas):
            return []
    torch.manual_seed(0)
    return _bound(name, [((torch.eye(3) * 0.5 + torch.rand(3, 3) * 0.1,), {})])


def _lacks_plain(calls: list[Call]) -> bool:
    """Whether all calls start with a floating tensor, and none passes just a matrix."""
    values = [[value for _, value in call.named()] for call in calls]
    floating = all(isinstance(v[0], torch.Tensor) and v[0].is_floating_point() for v in values if v)
    return floating and not any([getattr(value, "ndim", 0) for value in v] == [2] for v in values)


def _uneven(calls: list[Call]) -> list[Call]:
    """A call with several tensors again, with one of them without dimensions."""
    for call in calls:
        tensors = [(n, v) for n, v in call.named() if isinstance(v, torch.Tensor) and v.is_floating_point() and v.dim()]
        if len(tensors) > 1 and not call.variadic:
            found = [call.with_argument(name, value.flatten()[0].clone()) for name, value in tensors[:3]]
            return [one for one in found if not isinstance(one.run({}), Failure)]
    return []


def catalog(wanted: Callable[[str], bool] = lambda _name: True) -> tuple[dict[str, Target], Counter[str]]:
    """Targets by qualified name, and how many public names got no calls, by namespace."""
    targets: dict[str, Target] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, build in FORMS:
            if wanted(name):
                torch.manual_seed(0)
                calls = _bound(name, [build()])
                if not calls:
                    print(f"form does not run: {name}", file=sys.stderr)
                else:
                    targets.setdefault(name, Target(name)).calls += calls
        _from_opinfo(targets, wanted)
        skipped: Counter[str] = Counter()
        for name in filter(wanted, public_names()):
            target = targets.get(name)
            if target is None or _lacks_plain(target.calls):
                calls = _plain_unary(name)
                if calls:
                    targets.setdefault(name, Target(name)).calls += calls
                elif target is None:
                    skipped[f"no sample that runs: {name.rpartition('.')[0]}"] += 1
        for target in targets.values():
            target.calls += _uneven(target.calls)
        for name in filter(wanted, attribute_names()):
            targets[name] = Target(name, [_read_attribute(name)], attribute=True)
    return targets, skipped
