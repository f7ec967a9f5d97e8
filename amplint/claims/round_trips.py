"""Tensors that leave torch for numpy or a feature extractor, and get their old device back, but not their dtype."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.result_uses import uses_behind
from amplint.claims.surroundings import FunctionNode, Surroundings
from amplint.frozen import dataclass
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAKERS = frozenset(("torch.from_numpy", "torch.as_tensor", "torch.tensor"))
_CASTS = frozenset(("to", "type", "type_as", "float", "double", "half", "bfloat16", "int", "long", "bool", "byte"))
_INTEGERS = frozenset(
    (
        *("input_ids", "attention_mask", "token_type_ids", "special_tokens_mask", "decoder_input_ids", "labels"),
        *("decoder_attention_mask", "pixel_mask", "mask_labels", "class_labels", "length", "num_frames"),
    )
)
"""The results of tokenizers and feature extractors that are integers."""


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """``back`` moves what was made of ``tensor`` outside of torch to its device; ``sink`` gives it to a module.

    ``leaves`` is where it left; ``widened``: it was cast to float32 before, as bfloat16 needs.
    """

    back: ast.Call
    tensor: str
    leaves: ast.Call
    widened: bool
    sink: ast.Call


def round_trips(tree: ast.Module, around: Surroundings) -> Iterator[RoundTrip]:
    """Those in the methods of classes, whose result a module of the same object gets."""
    for cls in nodes_of_kind(tree, ast.ClassDef):
        methods = [node for node in cls.body if isinstance(node, FunctionNode)]
        for method in methods:
            arguments = method.args
            names = {a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]}
            departures = list(_departures(method, names)) if names else []
            if not departures:
                continue
            parents = {id(child): node for node in ast.walk(method) for child in ast.iter_child_nodes(node)}
            for tensor, leaves, variables, widened in departures:
                for back in nodes_of_kind(method, ast.Call):
                    if not _restores_device(back, tensor, parents):
                        continue
                    if not _made_outside(around, back, leaves, variables, widened):
                        continue
                    sink = _sink(back, method, methods, parents)
                    if sink is not None:
                        yield RoundTrip(back, tensor, leaves, widened, sink)


def _departures(method: FunctionNode, names: set[str]) -> Iterator[tuple[str, ast.Call, set[str], bool]]:
    """Arguments turned into arrays or lists: name, where, the variables that hold these, whether cast up before."""
    for node in nodes_of_kind(method, ast.Call):
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in ("numpy", "tolist"):
            continue
        base, widened = node.func.value, False
        while isinstance(base, (ast.Call, ast.Attribute, ast.Subscript)):
            if isinstance(base, ast.Call):
                if not isinstance(base.func, ast.Attribute):
                    break
                widened = widened or base.func.attr in ("float", "double")
                base = base.func.value
            else:
                base = base.value
        if not isinstance(base, ast.Name) or base.id not in names:
            continue
        held = {
            target.id
            for statement in nodes_of_kind(method, ast.Assign)
            if any(inner is node for inner in ast.walk(statement.value))
            for target in statement.targets
            if isinstance(target, ast.Name)
        }
        yield base.id, node, held, widened


def _restores_device(call: ast.Call, tensor: str, parents: dict[int, ast.AST]) -> bool:
    """``….to(x.device)``, of which nothing is cast then."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "to" or len(given) != 1:
        return False
    device = given[0]
    if not isinstance(device, ast.Attribute) or device.attr != "device" or not _is_name(device.value, tensor):
        return False
    trailer = parents.get(id(call))
    while isinstance(trailer, ast.Attribute):
        if trailer.attr in _CASTS:
            return False
        trailer = parents.get(id(parents.get(id(trailer))))
    return True


def _made_outside(around: Surroundings, back: ast.Call, leaves: ast.Call, variables: set[str], widened: bool) -> bool:
    """Whether a tensor of torch's or the extractor's own dtype is made there of what left."""
    assert isinstance(back.func, ast.Attribute)
    inside = list(ast.walk(back.func.value))
    if not any(node is leaves or (isinstance(node, ast.Name) and node.id in variables) for node in inside):
        return False
    if any(isinstance(node, ast.keyword) and node.arg == "dtype" for node in inside):
        return False
    for node in inside:
        if isinstance(node, ast.Call) and any(_asks_for_torch(keyword) for keyword in node.keywords):
            return _INTEGERS.isdisjoint(_read(back.func.value, node))
        if widened and around.torch_name(node) in _MAKERS:
            return True
    return False


def _asks_for_torch(keyword: ast.keyword) -> bool:
    asked = keyword.arg == "return_tensors" and isinstance(keyword.value, ast.Constant)
    return asked and isinstance(keyword.value, ast.Constant) and keyword.value.value == "pt"


def _read(node: ast.expr, until: ast.Call) -> Iterator[str]:
    """The names under which something is read from the result of a call."""
    while node is not until:
        if isinstance(node, ast.Attribute):
            yield node.attr
            node = node.value
        elif isinstance(node, ast.Subscript):
            if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
                yield node.slice.value
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return


def _sink(
    back: ast.Call,
    method: FunctionNode,
    methods: list[FunctionNode],
    parents: dict[int, ast.AST],
) -> ast.Call | None:
    """The call of a module that gets the tensor, in the method itself or in one that calls the method."""
    found = _given_to_module(back, method, parents)
    if found is not None or not isinstance(parents.get(id(back)), ast.Return):
        return found
    for caller in methods:
        around = {id(child): node for node in ast.walk(caller) for child in ast.iter_child_nodes(node)}
        for node in nodes_of_kind(caller, ast.Call):
            if _is_of_self(node.func, caller, method.name):
                found = found or _given_to_module(node, caller, around)
    return found


def _given_to_module(value: ast.Call, method: FunctionNode, parents: dict[int, ast.AST]) -> ast.Call | None:
    around = parents.get(id(value))
    if isinstance(around, ast.Call) and value in around.args and _is_of_self(around.func, method):
        return around
    if not isinstance(around, ast.Assign) or not isinstance(around.targets[0], ast.Name):
        return None
    for use in uses_behind(method, around.targets[0].id, around.value):
        call = parents.get(id(use))
        if isinstance(call, ast.Call) and use in call.args and _is_of_self(call.func, method):
            return call
        if isinstance(call, ast.Attribute) and call.attr in _CASTS:
            return None
    return None


def _is_of_self(function: ast.expr, method: FunctionNode, name: str = "") -> bool:
    """``self.model.encoder``, or with a name the method of the same object that is called so."""
    owner = function
    while isinstance(owner, ast.Attribute) and (not name or owner is function):
        owner = owner.value
    own = isinstance(function, ast.Attribute) and name in ("", function.attr)
    first = [*method.args.posonlyargs, *method.args.args][:1]
    return own and any(_is_name(owner, argument.arg) for argument in first)


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
