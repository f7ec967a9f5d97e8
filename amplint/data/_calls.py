"""Calls of torch functions whose tensor operands can be given other dtypes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any, NamedTuple

import torch

from amplint.frozen import dataclass
from amplint.infer.torch_model.torch_ops import sums_nothing

#: Lists of more tensors than this are recast as a whole.
LONGEST_SPLIT = 3
Outcome = Any  # a dtype name, "none", "py:…" for Python's numbers, a nested list of those, or Failure


class Failure(NamedTuple):
    """The call raised."""

    message: str


def _text(name: str, value: bool | str) -> str:
    """The value of a switch or text, as far as it matters: of ``einsum``'s equation whether it sums over an index."""
    if name == "equation":
        return "outer" if sums_nothing(str(value)) else "sum"
    return str(value)


def name_of(dtype: torch.dtype) -> str:
    """The torch name without prefix."""
    return str(dtype).removeprefix("torch.")


def category_of(dtype: torch.dtype) -> str:
    """One of "floating", "complex" and "integer", the last with bool."""
    return "floating" if dtype.is_floating_point else "complex" if dtype.is_complex else "integer"


class Operand(NamedTuple):
    """Tensors of one call that share a dtype: a parameter's, or part of a list of tensors."""

    param: str
    part: str = ""

    @property
    def name(self) -> str:
        """The parameter as the table names it, lists with a star."""
        return self.param + ("*" if self.part else "")


Assignment = Mapping[Operand, torch.dtype]


@dataclass(frozen=True, eq=False)
class Call:
    """One valid call: arguments, the parameter that each binds to, and all positional parameters of the overload."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    bound: tuple[str, ...]
    params: tuple[str, ...]

    @property
    def variadic(self) -> bool:
        """Whether arguments are gathered by ``*args``."""
        return bool(self.bound) and self.bound[-1].startswith("*")

    def named(self) -> Iterator[tuple[str, Any]]:
        """(parameter, value) of every argument; the values of ``*args`` are gathered in a tuple."""
        position = 0
        while position < len(self.args):
            name = self.bound[position]
            if name.startswith("*"):
                rest = self.args[position:]
                yield name[1:], rest[0] if len(rest) == 1 and isinstance(rest[0], (list, tuple)) else rest
                break
            yield name, self.args[position]
            position += 1
        yield from self.kwargs.items()

    def given(self) -> set[str]:
        """Parameters that are passed something else than None, by what tells calls apart.

        Switches and text with their value (``name=True``), several tensors also as ``name*``.
        """
        found = {name: value for name, value in self.named() if value is not None}
        valued = {f"{name}={_text(name, value)}" for name, value in found.items() if isinstance(value, (bool, str))}
        several = {f"{name}*" for name, value in found.items() if len([*_leaves(name, value)]) > 1}
        return valued | several | {name for name, value in found.items() if not isinstance(value, bool)}

    def operands(self, category: str) -> dict[Operand, int]:
        """Operands of one category of dtypes, and the highest number of dimensions among their tensors."""
        found: dict[Operand, int] = {}
        for name, value in self.named():
            for operand, tensor in _leaves(name, value):
                if category_of(tensor.dtype) == category:
                    found[operand] = max(found.get(operand, 0), tensor.dim())
        return found

    def run(self, dtypes: Assignment) -> Outcome:
        """The dtypes that come out when the operands have the given dtypes."""
        first, out = self.output(dtypes)
        if isinstance(out, Failure):
            return out
        if out is first and isinstance(out, torch.Tensor) and self.changes_first:
            return "self:" + described(out)
        return described(out)

    def with_argument(self, name: str, value: Any) -> Call:
        """The same call with another value for one argument."""
        if name in self.kwargs:
            return replace(self, kwargs={**self.kwargs, name: value})
        place = self.bound.index(name)
        return replace(self, args=(*self.args[:place], value, *self.args[place + 1 :]))

    @property
    def changes_first(self) -> bool:
        """Whether the name says that the first argument is changed in place and handed back."""
        return self.function.__name__.endswith("_") and not self.function.__name__.endswith("__")

    def output(self, dtypes: Assignment) -> tuple[Any, Any]:
        """The first argument and what the call gives, or Failure; arguments are copied first."""
        fixed = len(self.bound) - bool(self.bound and self.bound[-1].startswith("*"))
        args = [_recast(name, value, dtypes) for name, value in zip(self.bound[:fixed], self.args, strict=False)]
        rest = self.args[fixed:]
        if len(rest) == 1 and isinstance(rest[0], (list, tuple)):
            args.append(_recast(self.bound[-1][1:], rest[0], dtypes))
        elif rest:
            args.extend(_recast_items(self.bound[-1][1:], rest, dtypes))
        kwargs = {name: _recast(name, value, dtypes) for name, value in self.kwargs.items()}
        torch.manual_seed(0)
        first = args[0] if args else next(iter(kwargs.values()), None)
        try:
            return first, self.function(*args, **kwargs)
        except Exception as raised:
            return first, Failure((str(raised).splitlines() or [""])[0][:200])


def _leaves(name: str, value: Any) -> Iterator[tuple[Operand, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield Operand(name), value
    elif isinstance(value, (list, tuple)):
        tensors = [item for item in value if isinstance(item, torch.Tensor)]
        for part, item in zip(_parts(len(tensors)), tensors, strict=True):
            yield Operand(name, part), item


def _parts(count: int) -> list[str]:
    """Short lists have a head and a rest; long ones (the weights of a recurrent layer) go together."""
    return ["all"] * count if count > LONGEST_SPLIT else ["head", *["rest"] * (count - 1)][:count]


def _recast(name: str, value: Any, dtypes: Assignment, part: str = "") -> Any:
    if isinstance(value, torch.Tensor):
        copy = value.detach().clone()
        wanted = dtypes.get(Operand(name, part))
        if wanted is not None and (value.is_floating_point() or not wanted.is_floating_point):
            copy = copy.to(wanted)
        return copy
    if isinstance(value, (list, tuple)) and any(isinstance(item, torch.Tensor) for item in value):
        items = _recast_items(name, value, dtypes)
        return items if isinstance(value, list) else tuple(items)
    return value


def _recast_items(name: str, values: Any, dtypes: Assignment) -> list[Any]:
    """Items of a list of tensors, each recast as its part of the list."""
    parts = iter(_parts(sum(isinstance(value, torch.Tensor) for value in values)))
    return [_recast(name, v, dtypes, next(parts)) if isinstance(v, torch.Tensor) else v for v in values]


def described(out: Any) -> Any:
    """The dtype name of a tensor, what kind of Python number it is, a list of those, or "none"."""
    if isinstance(out, torch.Tensor):
        return name_of(out.dtype)
    if isinstance(out, torch.Size) or (isinstance(out, tuple) and out and all(type(item) is int for item in out)):
        return "py:ints"
    if isinstance(out, (list, tuple)):
        return [described(item) for item in out] if any(True for _ in tensors_in(out)) else "none"
    kind = next((kind for kind in (bool, int, float) if isinstance(out, kind)), None)
    return "none" if kind is None else f"py:{kind.__name__}"


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """All tensors of a value, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


# ---- parameters -------------------------------------------------------------------------------------------------


def _python_signature(function: Any) -> list[inspect.Parameter] | None:
    """Parameters of a function written in Python; a boolean_dispatch wrapper shows those of the function inside."""
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    if [p.name for p in found] == ["args", "kwargs"]:
        inner = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
        functions = [value for value in inner if inspect.isfunction(value)]
        return _python_signature(functions[0]) if functions else None
    return found


def _schema_signatures(name: str, function: Any) -> Iterator[list[str]]:
    """Positional parameters of the aten overloads that a builtin of this qualified name leads to."""
    base = name.rpartition(".")[2]
    prefix = next((p for p in ("linalg", "fft", "special") if name.startswith(f"torch.{p}.")), "")
    candidates = [f"{prefix}_{base}" if prefix else base, getattr(function, "__name__", base)]
    method = name.startswith("torch.Tensor.")
    for aten in dict.fromkeys(candidates):
        for schema in torch._C._jit_get_schemas_for_operator(f"aten::{aten}"):
            if any(argument.is_out for argument in schema.arguments):
                continue
            names = [argument.name for argument in schema.arguments if not argument.kwarg_only]
            if method and "self" in names:
                yield ["self", *[n for n in names if n != "self"]]
            elif not method:
                yield ["input" if n == "self" else n for n in names]
                yield names


def _documented_signature(name: str, function: Any) -> list[str] | None:
    """Positional parameters as the first line of the docstring writes them."""
    text = re.search(name.rpartition(".")[2] + r"\(([^)]*)\)", function.__doc__ or "")
    if not text:
        return None
    names = [part.partition("=")[0].strip().strip("[]") for part in text[1].split("*,")[0].split(",")]
    names = [n for n in names if n.lstrip("*").isidentifier()]
    return ["self", *names] if name.startswith("torch.Tensor.") else names


def signatures(name: str, function: Any) -> list[list[str]]:
    """Possible lists of positional parameters, a variadic one written with a leading star."""
    python = _python_signature(function)
    if python is not None:
        positional = [p for p in python if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
        names = ["*" + p.name if p.kind is p.VAR_POSITIONAL else p.name for p in positional]
        return [_documented_signature(name, function) or names] if names == ["*args"] else [names]
    found = [*_schema_signatures(name, function)]
    documented = _documented_signature(name, function)
    if documented:
        found.append(documented)
    found.append(["self"] if name.startswith("torch.Tensor.") else [])
    unique = [list(names) for names in dict.fromkeys(tuple(names) for names in found)]
    return sorted(unique, key=len, reverse=True)


def bind(name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
    """The call with its parameters named, or None where it does not run or no signature fits.

    A builtin's signature fits if the call also runs with every argument but ``self`` passed by keyword.
    """
    first = Call(function, args, kwargs, tuple(f"argument{i}" for i in range(len(args))), ())
    if isinstance(first.run({}), Failure):
        return None
    python = _python_signature(function) is not None
    for params in signatures(name, function):
        variadic = bool(params) and params[-1].startswith("*")
        if len(params) < len(args) and not variadic:
            continue
        method = name.startswith("torch.Tensor.")
        if not python and (variadic or not _runs_by_keyword(first, params[: len(args)], method)):
            continue
        bound = tuple(params[: len(args)])
        return Call(function, args, kwargs, bound, tuple(p.lstrip("*") for p in params))
    return None


def _runs_by_keyword(call: Call, params: list[str], method: bool) -> bool:
    kept = 1 if method else 0
    keywords = dict(zip(params[kept:], call.args[kept:], strict=True))
    if keywords.keys() & call.kwargs.keys():
        return False
    again = Call(call.function, call.args[:kept], {**keywords, **call.kwargs}, call.bound[:kept], ())
    return not isinstance(again.run({}), Failure)


@dataclass
class Target:
    """A torch callable by its qualified name, with the calls it is measured on."""

    name: str
    calls: list[Call] = field(default_factory=list)
    unsupported: dict[str, list[str]] = field(default_factory=dict)
    unsupported_until: dict[str, dict[str, str]] = field(default_factory=dict)
    only_with: dict[str, list[float | str]] = field(default_factory=dict)
    refused_with: dict[str, list[float | str]] = field(default_factory=dict)
    attribute: bool = False
