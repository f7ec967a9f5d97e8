"""Calls that demand bfloat16, and what asks whether there is support for it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.flow.training.roles import is_autocast
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.state.facts import FileFacts

_ASKS = frozenset(
    (
        *("is_bf16_supported", "get_device_capability", "get_device_properties", "is_bfloat16_supported"),
        *("is_torch_bf16_gpu_available", "is_torch_bf16_available", "is_bf16_available", "has_bf16_support"),
    )
)
"""What torch, accelerate, transformers and unsloth call it, under whatever name it is imported."""
_SETTINGS = {"bf16": (True,), "mixed_precision": ("bf16",), "precision": ("bf16", "bf16-mixed", "bf16-true")}


def _asks(node: ast.AST) -> bool:
    """Whether a node imports or reads what says whether a GPU supports bfloat16."""
    return (node.attr if isinstance(node, ast.Attribute) else getattr(node, "name", "")) in _ASKS and not isinstance(
        node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    )


def bfloat16_demands(facts: FileFacts) -> Iterator[ast.Call]:
    """The calls that ask CUDA for bfloat16."""
    names = {id(reference.node): reference.name for reference in facts.references}
    for node in nodes_of_kind(facts.source.tree, ast.Call):
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        name = names.get(id(node.func))
        if is_autocast(name):
            device = given.get("device_type", node.args[0] if node.args else None)
            cuda = name is not None and name.startswith("torch.cuda.")
            cuda = cuda or (isinstance(device, ast.Constant) and device.value == "cuda")
            dtype = given.get("dtype")
            if cuda and dtype is not None and names.get(id(dtype)) == "torch.bfloat16":
                yield node
        elif not (isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument"):
            found = ((given.get(key), values) for key, values in _SETTINGS.items())
            if any(isinstance(v, ast.Constant) and any(v.value is w or v.value == w for w in ws) for v, ws in found):
                yield node


def asks_for_support(tree: ast.Module) -> bool:
    """Whether a file imports or reads what says whether a GPU supports bfloat16."""
    return any(_asks(node) for node in ast.walk(tree))
