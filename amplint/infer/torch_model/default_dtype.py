"""Whether the modules of a file are ever built under a 16-bit default dtype, as loaders of pretrained models do."""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import TYPE_CHECKING

from amplint.infer.lattice.values import Builtin, TorchName
from amplint.infer.names import classes
from amplint.infer.names.definitions import Class
from amplint.infer.state.dispatch import evaluate
from amplint.infer.state.frame import Frame
from amplint.source import SourceError

if TYPE_CHECKING:
    from amplint.infer.names.namespace import Namespace
    from amplint.infer.state.session import Session

_LOADER = "from_pretrained"
_SETTERS = frozenset(("set_default_dtype", "set_default_torch_dtype", "default_dtype", "torch_dtype", _LOADER))
"""Attributes and keywords of torch and of hubs of models that set a default dtype or load weights."""


def may_be_low(session: Session, namespace: Namespace) -> bool:
    """Whether a file's modules may be built under a default dtype that is not float32.

    Something must say so: the file sets the default dtype, or loads weights, or one of its classes has a loader of
    pretrained weights or a base that is not known. ``module.bfloat16()`` converts whatever dtype a parameter was made
    in. Where nothing says so, a finding is possible only; a file that does not parse as a whole says nothing.
    """
    known = session.low_defaults.get(namespace)
    if known is None:
        with suppress(SourceError):
            known = _is_said(session, namespace)
        known = session.low_defaults[namespace] = bool(known)
    return known


def _is_said(session: Session, namespace: Namespace) -> bool:
    text = namespace.source.text
    if any(word in text for word in _SETTERS) and any(map(_sets, ast.walk(namespace.tree))):
        return True
    top = Frame(session, namespace)
    names = (ast.copy_location(ast.Name(name, ast.Load()), namespace.tree.body[0]) for name in namespace.defined)
    found = [evaluate(top, name) for name in names]
    return any(isinstance(value, Class) and value.namespace is namespace and _is_loaded(value) for value in found)


def _sets(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _SETTERS
    return (node.arg if isinstance(node, ast.keyword) else node.name if isinstance(node, ast.alias) else "") in _SETTERS


def _is_loaded(cls: Class) -> bool:
    if classes.find_member(cls, _LOADER) is not None:
        return True
    return any(not isinstance(base, (Class, TorchName, Builtin)) for base in classes.ancestry(cls)) and (
        classes.is_module(cls)
    )
