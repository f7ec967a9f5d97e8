"""Result rules: the dtype of a result as a function of the operands', found from what runs gave.

A rule's name is what the tables hold, and what ``amplint.infer.torch_model.results`` reads:

* ``first``: that of the first tensor; the name of another parameter: that of it;
* ``promote``: ``torch.result_type`` of all tensors; ``widest``: the same blind to which tensors have no dimensions;
* ``float``, ``sum``, ``int``: promoted, with integers as the default dtype, integers as int64, bool as int64;
* ``real``, ``float_real``, ``complex``: the real or complex counterpart, of ``float`` in the last two;
* a dtype; ``default``: the default dtype; ``numbers``: what Python's numbers become (see ``numbers`` in the entry);
* ``none``: no tensor; ``py:int``, ``py:bool``, ``py:float``, ``py:ints`` (a size), ``py:number`` (as the first tensor);
* ``self``: the first argument itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from amplint.data._calls import Assignment, Operand, Outcome, name_of


class Setting(NamedTuple):
    """What else a result depends on: the operands' dimensions, and kinds of Python numbers that stand for operands."""

    dims: Mapping[Operand, int]
    numbers: frozenset[type] = frozenset()


Rule = Callable[[Assignment, Setting], "torch.dtype | str | None"]
Seen = tuple[Assignment, Setting, Outcome]
"""Dtypes of the operands of one run, its setting, and what came out."""

CATEGORIES = ("everything", "real", "mixed", "floating")
"""What a rule holds for: all operands; no complex and bool ones; of those not integers alone; floating ones only."""


def promoted(dtypes: Assignment, setting: Setting) -> torch.dtype:
    """``torch.result_type`` of all operands."""
    with_dims = _widest([dtype for operand, dtype in dtypes.items() if setting.dims.get(operand, 1)])
    without = _widest([dtype for operand, dtype in dtypes.items() if not setting.dims.get(operand, 1)])
    result = with_dims or without or torch.get_default_dtype()
    if with_dims is not None and without is not None:
        result = torch.result_type(torch.empty(1, dtype=with_dims), torch.empty((), dtype=without))
    for kind in setting.numbers:
        result = torch.result_type(torch.empty(1, dtype=result), kind(1))
    return result


def _widest(dtypes: Sequence[torch.dtype]) -> torch.dtype | None:
    result = dtypes[0] if dtypes else None
    for dtype in dtypes[1:]:
        result = torch.promote_types(result or dtype, dtype)
    return result


def _floated(dtype: torch.dtype) -> torch.dtype:
    return dtype if dtype.is_floating_point or dtype.is_complex else torch.get_default_dtype()


def _summed(dtype: torch.dtype) -> torch.dtype:
    return dtype if dtype.is_floating_point or dtype.is_complex else torch.int64


def _param(name: str) -> Rule:
    def rule(dtypes: Assignment, setting: Setting) -> torch.dtype | None:
        found = [dtype for operand, dtype in dtypes.items() if operand.name == name and operand.part != "rest"]
        return found[0] if found else None

    return rule


def _number(dtype: torch.dtype | str | None) -> str | None:
    if not isinstance(dtype, torch.dtype) or dtype.is_complex:
        return None
    return "py:float" if dtype.is_floating_point else "py:bool" if dtype is torch.bool else "py:int"


_ON_PROMOTED: dict[str, Callable[[torch.dtype], torch.dtype]] = {
    "promote": lambda dtype: dtype,
    "float": _floated,
    "sum": _summed,
    "int": lambda dtype: torch.int64 if dtype is torch.bool else dtype,
    "real": lambda dtype: dtype.to_real(),
    "float_real": lambda dtype: _floated(dtype).to_real(),
    "complex": lambda dtype: _floated(dtype).to_complex(),
}


def _on_promoted(change: Callable[[torch.dtype], torch.dtype]) -> Rule:
    return lambda dtypes, setting: change(promoted(dtypes, setting))


def candidates(tensors: Sequence[str]) -> Iterator[tuple[str, Rule]]:
    """Rules for an operation on these tensors, the plainest first."""
    if tensors:
        yield "first", _param(tensors[0])
    for name, change in _ON_PROMOTED.items():
        yield name, _on_promoted(change)
        if name == "promote":
            yield "widest", lambda dtypes, setting: _widest(list(dtypes.values()))
    for param in tensors[1:]:
        yield param, _param(param)
    if tensors:
        first = _param(tensors[0])
        yield "py:number", lambda dtypes, setting: _number(first(dtypes, setting))


def _fits(rule: Rule, seen: Sequence[Seen]) -> bool:
    expected = [(rule(dtypes, setting), outcome) for dtypes, setting, outcome in seen if dtypes]
    known = [(found, outcome) for found, outcome in expected if found is not None]
    return bool(known) and all(
        (found if isinstance(found, str) else name_of(found)) == outcome for found, outcome in known
    )


def single_rule(seen: Sequence[Seen], tensors: Sequence[str]) -> str | None:
    """The plainest rule that explains one output of every run; what takes integers of one dtype alone gives that."""
    outcomes = {outcome for _, _, outcome in seen}
    varied = len({tuple(sorted(map(str, dtypes.values()))) for dtypes, _, _ in seen}) > 1
    if len(outcomes) == 1:
        only = str(next(iter(outcomes)))
        if varied or not tensors or only == "none" or only.startswith(("py:", "int")):
            return only
    return next((name for name, rule in candidates(tensors) if _fits(rule, seen)), None)


def shaped_rule(seen: Sequence[Seen], tensors: Sequence[str], variable: bool) -> Any:
    """The rule, or list of rules, of runs whose results have the same shape; ``…*`` for a list of unfixed length."""
    if all(isinstance(outcome, str) and outcome.startswith("self:") for _, _, outcome in seen):
        return "self"
    if not isinstance(seen[0][2], list):
        return single_rule(seen, tensors)
    if variable:
        flat = [(dtypes, setting, item) for dtypes, setting, out in seen for item in flatten(out)]
        rule = single_rule(flat, tensors)
        if rule is not None:
            return rule + "*"
        return "each" if all(_each(dtypes, out) for dtypes, _, out in seen) else None
    rules = []
    for position in range(len(seen[0][2])):
        part = [(dtypes, setting, out[position]) for dtypes, setting, out in seen]
        rules.append(shaped_rule(part, tensors, variable))
    return None if None in rules else rules


def _each(dtypes: Assignment, out: Outcome) -> bool:
    """Whether every tensor of a list comes out as it went in."""
    parts = {operand.part: name_of(dtype) for operand, dtype in dtypes.items()}
    if not isinstance(out, list) or not parts.keys() <= {"all", "head", "rest"}:
        return False
    expected = [parts.get("all") or parts.get("head" if i == 0 else "rest") for i in range(len(out))]
    return out == expected


def in_category(dtypes: Assignment, category: str) -> bool:
    """Whether all operands are of a category."""
    floating = [d.is_floating_point for d in dtypes.values()]
    if category == "everything" or all(floating):
        return True
    odd = (torch.bool, torch.complex64, torch.complex128)
    return category != "floating" and not {*dtypes.values()} & {*odd} and (category == "real" or any(floating))


def flatten(outcome: Outcome) -> list[str]:
    """Dtype names of all outputs."""
    if isinstance(outcome, list):
        return [name for item in outcome for name in flatten(item)]
    return [str(outcome).removeprefix("self:")]


def shape_of(outcome: Outcome) -> str:
    """Results of the same shape can share a rule."""
    if isinstance(outcome, list):
        return "[" + ",".join(shape_of(item) for item in outcome) + "]"
    if outcome == "none" or outcome.startswith("py:"):
        return "none"
    return "self" if outcome.startswith("self:") else "tensor"


# ---- prediction -------------------------------------------------------------------------------------------------


def evaluate(rule: Any, tensors: Sequence[str], dtypes: Assignment, setting: Setting) -> Any:
    """The outcome that a rule predicts, None for any part of which it says nothing."""
    if isinstance(rule, list):
        return [evaluate(part, tensors, dtypes, setting) for part in rule]
    if rule == "self":
        rule = "first"
    for name, candidate in candidates(tensors):
        if name == rule:
            found = candidate(dtypes, setting)
            return found if found is None or isinstance(found, str) else name_of(found)
    if rule in ("each", "numbers") or rule.endswith("*"):
        return None
    return name_of(torch.get_default_dtype()) if rule == "default" else rule
