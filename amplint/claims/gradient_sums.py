"""Gradients that an autograd Function adds up over a loop in the dtype of what they belong to."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.surroundings import Surroundings
from amplint.claims.suspect import likely_loss
from amplint.infer.lattice.dtypes import LOW
from amplint.infer.lattice.values import Tensor
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.suspect import Suspect
    from amplint.infer.state.facts import FileFacts

_IN_PLACE = frozenset(("add_", "addmm_", "addmv_", "baddbmm_"))
_OUT = frozenset(("add", "addmm", "addmv", "baddbmm"))
_LOW = ("float16", "bfloat16")


def summed_in_place(facts: FileFacts) -> Iterator[Suspect]:
    """Of each loop the first ``zeros_like(weight)`` that it adds gradients to, and that is handed out.

    Without autocast a 16-bit weight has a 16-bit sum then, and each addition rounds: what is smaller than 1/256 of a
    bfloat16 sum, or 1/2048 of a float16 one, is lost. The loop itself computes the parts from tensors of a known dtype;
    of what an unknown helper returns, nobody knows whether 16 bit ever get there.
    """
    low = [number for number, scenario in enumerate(facts.scenarios) if scenario.parameters in _LOW]
    if not low or not facts.autograd_functions:
        return
    around = Surroundings.of(facts.source.tree)
    computed = _computed_rows(facts)
    for function in _run_by_functions(facts):
        makers = _makers(function, around)
        returned = {name.id for node in nodes_of_kind(function, ast.Return) for name in nodes_of_kind(node, ast.Name)}
        for loop in nodes_of_kind(function, ast.For, ast.While):
            if computed.isdisjoint(_rows(loop)):
                continue
            for name in _sums(loop, around):
                call = makers.get(name)
                if call is None or name not in returned or call.lineno > loop.lineno:
                    continue
                wide = _wide_lanes(call, facts)
                scenarios = facts.names(number for number in low if number not in wide)
                if not scenarios:
                    continue
                model = ast.unparse(call.args[0] if call.args else call.func)
                message = (
                    f"`{name}` adds up a gradient over a loop in the dtype of `{model}`: in 16 bit, parts are lost"
                )
                promotes = not _written_strictly(function, name, around)
                yield likely_loss(facts, call, message, scenarios, data=call if promotes else None)
                makers = {}


def _wide_lanes(call: ast.Call, facts: FileFacts) -> set[int]:
    """The scenarios in which what a tensor is made like is surely no 16-bit tensor."""
    made = next((known.arguments.get("input") for known in facts.calls if known.node is call), None)
    if not isinstance(made, Tensor) or made.maybe:
        return set()
    return {number for number, lane in enumerate(made.dtypes) if lane.known and not lane.mask & LOW}


def _written_strictly(function: ast.FunctionDef, name: str, around: Surroundings) -> bool:
    """Whether a matrix product writes to a variable: it wants all in one dtype."""
    for call in nodes_of_kind(function, ast.Call):
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        written = [keyword.value for keyword in call.keywords if keyword.arg == "out"]
        product = around.called(call)
        if isinstance(receiver, ast.Name) and receiver.id == name and (product or "").startswith(("addm", "baddbmm")):
            return True
        if product != "add" and any(isinstance(value, ast.Name) and value.id == name for value in written):
            return True
    return False


def _computed_rows(facts: FileFacts) -> frozenset[int]:
    """Where the file's autograd Functions, and what they call, compute with tensors of a known dtype."""
    sensitive = (s for f in facts.autograd_functions for s in (*f.sensitive_forward, *f.sensitive_backward))
    return frozenset(s.cause.span.start.row for s in sensitive if s.known and s.cause.filename == facts.path)


def _rows(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _run_by_functions(facts: FileFacts) -> Iterator[ast.FunctionDef]:
    """The methods of the file's autograd Functions, and the functions of the file that these call."""
    methods = [m for f in facts.autograd_functions for m in (f.forward, f.backward) if m is not None]
    yield from methods
    calls = [call for method in methods for call in nodes_of_kind(method, ast.Call)]
    called = {call.func.id for call in calls if isinstance(call.func, ast.Name)}
    for statement in facts.source.tree.body:
        if isinstance(statement, ast.FunctionDef) and statement.name in called:
            yield statement


def _makers(function: ast.FunctionDef, around: Surroundings) -> dict[str, ast.Call]:
    """Variables that hold ``torch.zeros_like(x)`` or nothing; none that may be made in a given dtype instead."""
    made: dict[str, ast.Call] = {}
    chosen = set()
    for node in nodes_of_kind(function, ast.Assign):
        if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
            continue
        arms = [node.value.body, node.value.orelse] if isinstance(node.value, ast.IfExp) else [node.value]
        for call in arms:
            if not isinstance(call, ast.Call) or around.torch_name(call.func) != "torch.zeros_like":
                continue
            if any(keyword.arg in ("dtype", None) for keyword in call.keywords):
                chosen.add(node.targets[0].id)
            made.setdefault(node.targets[0].id, call)
    return {name: call for name, call in made.items() if name not in chosen}


def _sums(loop: ast.For | ast.While, around: Surroundings) -> Iterator[str]:
    """The variables that a loop adds to, as a whole."""
    for node in nodes_of_kind(loop, ast.AugAssign, ast.Call):
        if isinstance(node, ast.AugAssign):
            if isinstance(node.op, ast.Add) and isinstance(node.target, ast.Name):
                yield node.target.id
        else:
            method = node.func if isinstance(node.func, ast.Attribute) else None
            if method is not None and method.attr in _IN_PLACE and isinstance(method.value, ast.Name):
                yield method.value.id
            elif around.called(node) in _OUT:
                outs = (k.value for k in node.keywords if k.arg == "out")
                yield from (out.id for out in outs if isinstance(out, ast.Name))
