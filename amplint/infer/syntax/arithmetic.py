"""What a function does with a parameter that may be a number."""

from __future__ import annotations

import ast

from amplint.infer.syntax.bodies import nodes_below

_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)


def is_only_computed_with(function: ast.AST, parameter: str) -> bool:
    """Whether all that a function does with a parameter is arithmetic, or to store it: an operand of ``+``, ``-``,
    ``*``, ``/`` or ``**``, or what an attribute is set to, alone or in a tuple; one of the former is seen."""
    parents = {id(child): node for node in nodes_below(function) for child in ast.iter_child_nodes(node)}
    uses = [node for node in nodes_below(function) if isinstance(node, ast.Name) and node.id == parameter]
    computed = [isinstance(p := parents.get(id(use)), ast.BinOp) and isinstance(p.op, _OPERATORS) for use in uses]
    return any(computed) and all(
        is_operand or _is_stored(use, parents) for use, is_operand in zip(uses, computed, strict=True)
    )


def _is_stored(use: ast.AST, parents: dict[int, ast.AST]) -> bool:
    parent = parents.get(id(use))
    if isinstance(parent, ast.Tuple):
        parent = parents.get(id(parent))
    return isinstance(parent, ast.Assign) and all(isinstance(target, ast.Attribute) for target in parent.targets)
