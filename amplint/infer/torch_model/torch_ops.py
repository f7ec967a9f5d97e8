"""The table of torch operations: which operands must agree, what autocast casts, which dtype comes out.

Read from ``amplint/data/ops.json``, which ``amplint.data.generate_ops`` makes by running torch on a CPU, ``cuda.json``,
which has what a GPU's kernels do otherwise, ``devices.json``, which says what has to lie on one device, and
``newer.json``, which has what newer releases do otherwise.
"""

from __future__ import annotations

from enum import Enum
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from amplint.data import read_table
from amplint.data.newer import entry_in, merged
from amplint.frozen import dataclass
from amplint.infer.lattice.scenarios import DEVICES
from amplint.infer.lattice.traits import GIVING
from amplint.infer.lattice.values import Const, Number, Sequence, Tensor, Union, Value
from amplint.infer.syntax.unchanging import replace

if TYPE_CHECKING:
    from amplint.infer.lattice.arguments import Arguments

LOWER, FP32, FP32_RESULT, PROMOTE, BANNED = "lower", "fp32", "fp32_out", "promote", "banned"
Rule = str | tuple["Rule", ...]
"""What gives a result's dtype, by name (see ``amplint.data._rules``); a tuple for a result of several parts."""


class Watched(Enum):
    """When an operation is noted for the rules on range and support."""

    LOW = "where an operand is low precision"
    NUMBERS = "where one is, and an extreme number is passed"
    OLDER = "where one is, and a release of torch that is to be supported has no kernel for it"
    TRAITS = "where one is, and its values are of a kind that matters"


LOW_NAMES = ("float16", "bfloat16")
NUMPY = "torch.Tensor.numpy"
NO_NUMPY = ("bfloat16",)
"""Low-precision dtypes that NumPy does not have."""

_TRANSFORMS = ("torch.fft.", "torch.stft", "torch.Tensor.stft")

LOSES_RANGE = frozenset(
    [
        *("exp", "exp2", "expm1", "cosh", "sinh", "cumsum", "cumprod", "prod", "logcumsumexp"),
        *("softmax", "log_softmax", "logsumexp", "logsigmoid"),
    ]
)
"""Operations that overflow or lose accuracy in low precision, whatever they get."""

LOGARITHMS = ("log", "log2", "log10")

LOSES_TRAITS = frozenset(
    [
        *("sum", "mean", "nansum", "einsum", "outer", "ger", "norm", "vector_norm"),
        *("matmul", "mm", "bmm", "addmm", "mv"),
        *LOGARITHMS,
    ]
)
"""Operations that do where the values are squares, counts, gradients or shares, or the tensor is sparse."""

TAKES_NUMBERS = frozenset(
    [
        *("masked_fill", "fill", "index_fill", "fill_diagonal", "scatter", "index_put", "where", "pad"),
        *("clamp", "clamp_min", "clamp_max", "clip", "threshold", "hardtanh"),
        *("mul", "multiply", "add", "sub", "subtract", "div", "maximum", "minimum", "nan_to_num", "addcdiv"),
        *("normalize", "cosine_similarity", "logit", "rsub"),
    ]
)
"""Operations whose Python numbers matter where a low-precision dtype cannot hold them."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A parameter that takes a tensor: its name, its position, whether it takes several."""

    name: str
    position: int | None
    listed: bool


@dataclass(frozen=True, slots=True)
class Case:
    """An operation as it is where certain parameters are passed."""

    needs: tuple[str, ...]
    params: tuple[str, ...] | None
    op: Op


@dataclass(frozen=True, slots=True)
class Op:
    """One torch function or method, by the name that Python calls it.

    ``params``: positional parameters in order. ``tensors``: those whose dtype matters; a trailing ``*`` marks a list of
    tensors. ``result``: the dtype of the result, as a function of the operands' as the kernel sees them. ``holds``: the
    operands that it is known for. ``strict``: groups of parameters whose floating dtypes must be equal, else torch
    raises; ``bare``: those of them that need not agree where they have no dimensions. ``not_narrower``: parameters of a
    norm that may be wider than its input, but raise where they are narrower; ``as_wide``: those that may be wider on
    the CPU, and not on this device.
    ``policy``: what autocast does with the operands, by device; ``under``: the result under autocast where that
    does not tell. ``scalar``: parameters without which the result has no dimensions, None where it may lose some.
    ``passes``: the result is as the first argument in all that matters here. ``creates``: it makes a tensor out of
    numbers, or like another one. ``lacks``: the low-precision dtypes that it has no kernel for, by device; ``lacked``:
    those that it had none for up to a release; ``lacks_with``: arguments with which it has none on any. ``together``:
    parameters whose tensors have to lie on one device. ``watched``: when it is noted for the rules on that.
    ``on_cuda``: the operation as CUDA's kernels have it, where they differ.
    """

    name: str
    params: tuple[str, ...]
    tensors: tuple[str, ...]
    slots: tuple[Slot, ...]
    result: Rule
    holds: str
    even: bool
    variadic: str | None
    strict: tuple[tuple[str, ...], ...]
    bare: tuple[str, ...]
    not_narrower: tuple[str, ...]
    as_wide: tuple[str, ...]
    policy: dict[str, str]
    since: dict[str, tuple[int, int]]
    under: dict[str, Rule]
    unsure_under: dict[str, tuple[str, ...]]
    before: tuple[tuple[tuple[int, int], Rule], ...]
    dtype_arg: str | None
    scalar: tuple[str, ...] | None
    keeps_dims: bool
    dimensioned: bool
    fields: tuple[str, ...]
    numbers: tuple[str, ...]
    attribute: bool
    in_place: bool
    passes: bool
    creates: bool
    watched: Watched | None
    gives_trait: bool
    lacks: dict[str, tuple[str, ...]]
    lacked: dict[str, dict[str, tuple[int, int]]]
    lacks_few: dict[str, tuple[float | str, ...]]
    lacks_with: dict[str, tuple[float | str, ...]]
    together: tuple[str, ...]
    cases: tuple[Case, ...]
    strict_without: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]
    on_cuda: Op | None

    def on(self, device: str) -> Op:
        """The operation as a device's kernels have it."""
        return self.on_cuda if self.on_cuda is not None and device == "cuda" else self

    def policy_on(self, device: str, torch_version: tuple[int, int]) -> str | None:
        """What autocast on a device does with the operands in a release of torch."""
        policy = self.policy.get(device)
        if policy is not None and torch_version < self.since.get(device, torch_version):
            return None
        return policy

    def lacked_from(self, device: str, oldest: tuple[int, int]) -> dict[str, tuple[int, int]]:
        """The low-precision dtypes that some release from the oldest on had no kernel for, with the last such one."""
        return {dtype: last for dtype, last in self.lacked.get(device, {}).items() if last >= oldest}

    def lacking(self, device: str, arguments: dict[str, Value]) -> tuple[str, ...]:
        """The low-precision dtypes that it has no kernel for, as these arguments have it.

        cuFFT transforms float16 where the size is a power of two, as one that is not known mostly is.
        """
        refused = () if self._runs_large(arguments) else self.lacks.get(device, ())
        if any(isinstance(v := arguments.get(name), Const) and v.value in vs for name, vs in self.lacks_with.items()):
            refused = LOW_NAMES
        if device != "cuda" or not self.name.startswith(_TRANSFORMS):
            return refused
        size = next((arguments[name] for name in ("n_fft", "n") if name in arguments), None)
        number = size.value if isinstance(size, Const) else size.usual if isinstance(size, Number) else None
        even = (name for name in refused if name != "float16")
        return (*even, "float16") if isinstance(number, int) and number & number - 1 else tuple(even)

    def _runs_large(self, arguments: dict[str, Value]) -> bool:
        """Whether it is one that many rows run without the kernel, as these arguments have it, or unknown ones may."""
        given = {name: value for name in self.lacks_few if (value := arguments.get(name)) is not None}
        return bool(self.lacks_few) and not any(
            isinstance(value, Const) and value.value is not None and value.value not in self.lacks_few[name]
            for name, value in given.items()
        )

    def changes(self, device: str) -> list[tuple[int, int]]:
        """The releases of torch from which on it does something else to dtypes."""
        releases = [release for release, _ in self.before]
        return [*releases, self.since[device]] if device in self.since else releases

    def result_in(self, torch_version: tuple[int, int]) -> Rule:
        """The result in a release of torch."""
        return next((rule for release, rule in self.before if torch_version < release), self.result)

    def variants(self, arguments: Arguments, bound: dict[str, Value]) -> list[tuple[Op, dict[str, Value]]]:
        """The operation as these arguments have it, with the arguments by parameter.

        Several where it depends on an argument that is not known; the usual one last.
        """
        found: list[tuple[Op, dict[str, Value]]] = []
        for case in self.cases:
            own = bound if case.params is None else arguments.bind(case.params)
            answers = [
                self._several(arguments, own) if need.endswith("*") else _passed(own, need, case.params is not None)
                for need in case.needs
            ]
            if False in answers:
                continue
            found.append((case.op, own))
            if None not in answers:
                return found
        found.append((self, bound))
        return found

    def _several(self, arguments: Arguments, bound: dict[str, Value]) -> bool:
        """Whether more than one tensor is passed, as a list or as the rest of the arguments."""
        slot = self.slots[0]
        value = bound.get(slot.name)
        if isinstance(value, Sequence):
            return value.items is None or len(value.items) > 1
        return slot.name == self.variadic and len(arguments.positional) > (slot.position or 0) + 1


def _passed(bound: dict[str, Value], need: str, overload: bool) -> bool | None:
    """Whether a parameter is passed, as ``needs`` of a case asks; None where that is not known.

    ``overload``: the parameter shares its position with another overload's, which takes a tensor there.
    """
    name, equals, wanted = need.partition("=")
    value = bound.get(name)
    if value is None:
        return False
    if isinstance(value, Const):
        if name == "equation" and isinstance(value.value, str):
            return (wanted == "outer") == sums_nothing(value.value)
        return _spells(value.value, wanted) if equals else value.value is not None
    if name == "equation":
        return wanted != "outer"
    if equals or isinstance(value, Union):
        return False if isinstance(value, (Tensor, Sequence)) else None
    if isinstance(value, Tensor):
        return not overload
    return True if not overload or isinstance(value, (Number, Sequence)) else None


def _spells(value: object, wanted: str) -> bool:
    """Whether a constant is written as in the table; Python writes no integer of thousands of digits."""
    return not (isinstance(value, int) and value.bit_length() > 64) and str(value) == wanted


def sums_nothing(equation: str) -> bool:
    """Whether an equation of ``einsum`` with several operands sums over no index: then it only multiplies."""
    operands, arrow, result = equation.replace(" ", "").partition("->")
    return bool(arrow) and "," in operands and {*operands} - {","} <= {*result}


_FIRST_ON_RECORD = (2, 0)
"""The first release by whose parts of functions the policies are told: what is older is taken to be like it, since
``norm`` was another operation then."""


def _version(text: str) -> tuple[int, int]:
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


@lru_cache(maxsize=1)
def _measured() -> dict[str, Any]:
    measured: dict[str, Any] = read_table("ops.json")
    return measured


@lru_cache(maxsize=1)
def _devices() -> dict[str, list[str]]:
    devices: dict[str, list[str]] = read_table("devices.json")["ops"]
    return devices


@lru_cache(maxsize=1)
def _cuda() -> dict[str, dict[str, Any]]:
    cuda: dict[str, dict[str, Any]] = read_table("cuda.json")["ops"]
    return cuda


def _table() -> dict[str, dict[str, Any]]:
    ops: dict[str, dict[str, Any]] = _measured()["ops"]
    return ops


@cache
def measured_release() -> tuple[int, int]:
    """The oldest release of torch that is known to have the operations of the table."""
    return _version(_measured()["torch"])


@cache
def find_op(name: str, release: tuple[int, int] | None = None) -> Op | None:
    """The operation of a qualified name such as ``torch.nn.functional.linear`` or ``torch.Tensor.index_add_``.

    As it is in a release of torch, by default the one that the table was measured on.
    """
    row = entry_in(release or measured_release(), "ops", name, _table().get(name))
    return None if row is None else with_kernels(op_of(name, row), name, row)


def with_kernels(op: Op, entry: str, row: dict[str, Any]) -> Op:
    """An operation of the table's row, with what CUDA's kernels do otherwise by the entry of that name."""
    change = _cuda().get(entry)
    if change is None:
        return op
    there = op_of(op.name, merged(row, change))
    with_input = {name for group in there.strict if "input" in group for name in group}
    as_wide = tuple(name for name in op.not_narrower if name in with_input)
    return replace(op, on_cuda=replace(there, as_wide=as_wide))


def names() -> list[str]:
    """The qualified names of all operations of the table."""
    return list(_table())


def support_of(name: str) -> dict[str, Any]:
    """What an entry says of kernels that the operation lacks."""
    return {key: value for key, value in _table().get(name, {}).items() if key.startswith("unsupported")}


@cache
def find_method(name: str, release: tuple[int, int]) -> Op | None:
    """The operation that a method or attribute of a tensor is in a release of torch."""
    return find_op(f"torch.Tensor.{name}", release)


def op_of(name: str, row: dict[str, Any]) -> Op:
    """An entry of a table, read."""
    params, tensors = tuple(row["params"]), tuple(row["tensors"])
    positions = {param: place for place, param in enumerate(params)}
    op = Op(
        name=name,
        params=params,
        tensors=tensors,
        slots=tuple(Slot(t.rstrip("*"), positions.get(t.rstrip("*")), t.endswith("*")) for t in tensors),
        result=_rule(row["result"]),
        holds=row.get("holds", "everything"),
        even=row.get("even", False),
        variadic=row.get("variadic"),
        strict=_groups(row.get("strict", ())),
        bare=tuple(row.get("bare", ())),
        not_narrower=tuple(b for a, b in row.get("one_way", ()) if a == "input" and b in ("weight", "bias")),
        as_wide=(),
        policy=row.get("policy", {}),
        since={device: v for device, text in row.get("since", {}).items() if (v := _version(text)) > _FIRST_ON_RECORD},
        under={device: _rule(rule) for device, rule in row.get("under", {}).items()},
        unsure_under={device: tuple(found) for device, found in row.get("unsure_under", {}).items()},
        before=tuple(sorted((_version(release), _rule(rule)) for release, rule in row.get("before", {}).items())),
        dtype_arg=row.get("dtype_arg"),
        scalar=tuple(row["scalar"]) if row.get("scalar") is not None else None,
        keeps_dims="scalar" not in row,
        dimensioned=row.get("dimensioned", False),
        fields=tuple(row.get("fields", ())),
        numbers=tuple(row.get("numbers", ())),
        attribute=row.get("attribute", False),
        in_place=name.endswith("_") and not name.endswith("__"),
        passes=_passes(row, tensors == params[:1]),
        creates=_creates(name, row),
        watched=_watched(name, row),
        gives_trait=name.rpartition(".")[2] in GIVING,
        lacks={device: tuple(dtypes) for device, dtypes in row.get("unsupported", {}).items()}
        or (dict.fromkeys(DEVICES, NO_NUMPY) if name == NUMPY else {}),
        lacked={
            device: {dtype: _version(release) for dtype, release in found.items()}
            for device, found in row.get("unsupported_until", {}).items()
        },
        lacks_few={name: tuple(values) for name, values in row.get("unsupported_but", {}).items()},
        lacks_with={name: tuple(values) for name, values in row.get("unsupported_with", {}).items()},
        together=tuple(_cuda().get(name, {}).get("together", _devices().get(name, ()))),
        cases=(),
        strict_without=tuple((param, _groups(groups)) for param, groups in row.get("strict_without", {}).items()),
        on_cuda=None,
    )
    cases = tuple(_case(op, case) for case in row.get("cases", ()))
    return replace(op, cases=cases) if cases else op


def _watched(name: str, row: dict[str, Any]) -> Watched | None:
    short = name.rpartition(".")[2]
    if row.get("unsupported") or row.get("unsupported_with") or name == NUMPY:
        return Watched.LOW
    if short.rstrip("_") in LOSES_RANGE:
        return Watched.LOW
    if short in LOSES_TRAITS:
        return Watched.TRAITS
    if short.rstrip("_") in TAKES_NUMBERS:
        return Watched.NUMBERS
    return Watched.OLDER if row.get("unsupported_until") else None


def _passes(row: dict[str, Any], alone: bool) -> bool:
    """Whether only the first argument matters, and the result is like it."""
    plain = {
        "params",
        "tensors",
        "result",
        "unsupported",
        "unsupported_but",
        "unsupported_with",
        "unsupported_until",
        "attribute",
        "variadic",
        "one_way",
    }
    if row.keys() - plain:
        return False
    return row["result"] == "self" or (row["result"] == "first" and alone)


def _creates(name: str, row: dict[str, Any]) -> bool:
    """Whether a new tensor comes out, of the dtype argument if there is one."""
    if "dtype_arg" not in row:
        return False
    short = name.rpartition(".")[2]
    like = short.endswith("_like") or short.startswith("new_")
    return row["result"] in ("default", "numbers") or not row["tensors"] or (row["result"] == "first" and like)


def _case(op: Op, row: dict[str, Any]) -> Case:
    params = tuple(row["params"]) if "params" in row else None
    other = replace(
        op,
        result=_rule(row["result"]) if "result" in row else op.result,
        under={**op.under, **{device: _rule(rule) for device, rule in row.get("under", {}).items()}},
        params=params or op.params,
        strict=_groups(row["strict"]) if "strict" in row else op.strict,
    )
    return Case(tuple(row["needs"]), params, other)


def _groups(groups: Any) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(group) for group in groups)


def _rule(value: Any) -> Rule:
    return tuple(_rule(part) for part in value) if isinstance(value, list) else str(value)
