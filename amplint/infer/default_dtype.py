"""Whether the modules of a file are ever built under a 16-bit default dtype, as loaders of pretrained models do."""

from __future__ import annotations

import ast
import re
import weakref
from typing import TYPE_CHECKING

from amplint.infer import classes
from amplint.infer.frame import Frame, evaluate
from amplint.infer.values import Builtin, Class, TorchName

if TYPE_CHECKING:
    from amplint.infer.namespace import Namespace
    from amplint.infer.session import Session

_SETS_DEFAULT = re.compile(r"\b(?:set_)?default_(?:torch_)?dtype\b|\btorch_dtype\b")
_LOADER = "from_pretrained"

_answers: weakref.WeakKeyDictionary[Namespace, bool] = weakref.WeakKeyDictionary()


def may_be_low(session: Session, namespace: Namespace) -> bool:
    """Whether a file's modules may be built under a default dtype that is not float32.

    Something must say so: the file speaks of the default dtype, or one of its classes has a loader of pretrained
    weights or a base that is not known. ``module.bfloat16()`` converts whatever dtype a parameter was made in. The
    words are torch's own and those of hubs of models; where another is used, a finding is possible only.
    """
    known = _answers.get(namespace)
    if known is None:
        known = _answers[namespace] = _is_said(session, namespace)
    return known


def _is_said(session: Session, namespace: Namespace) -> bool:
    text = namespace.source.text
    if _SETS_DEFAULT.search(text) or f"{_LOADER}(" in text:
        return True
    top = Frame(session, namespace)
    names = (ast.copy_location(ast.Name(name, ast.Load()), namespace.tree.body[0]) for name in namespace.defined)
    found = [evaluate(top, name) for name in names]
    return any(isinstance(value, Class) and value.namespace is namespace and _is_loaded(value) for value in found)


def _is_loaded(cls: Class) -> bool:
    if classes.find_member(cls, _LOADER) is not None:
        return True
    return any(not isinstance(base, (Class, TorchName, Builtin)) for base in classes.ancestry(cls)) and (
        classes.is_module(cls)
    )
