"""What to write where a class could not be built."""

from __future__ import annotations

from typing import Any

import torch

from amplint.verify.build.signatures import VARIADIC, Parameter, constructor, forward_parameters, parameters


def for_class(target: type) -> str:
    """The skeleton of an ``amplint_example`` for ``target``, with the parameters that it has to fill in."""
    if issubclass(target, torch.autograd.Function):
        names = ", ".join(f"{name}=..." for name in list(parameters(target.forward)) if name not in ("ctx", "self"))
        return _skeleton(target, f"return {target.__name__}.apply, (...,), {{}}  # {names}")
    wanted = _required(constructor(target))
    module = f"{target.__name__}({', '.join(f'{name}=...' for name in wanted)})"
    if not issubclass(target, torch.nn.Module):
        return _skeleton(target, f"return {module}.method, (...,), {{}}  # the flagged method and its arguments")
    forward = _required(forward_parameters(target))
    arguments = ", ".join(forward) + ("," if len(forward) == 1 else "")
    return _skeleton(target, f"return {module}, ({arguments}), {{}}")


def for_function(target: Any) -> str:
    """The skeleton of a file's ``amplint_example`` that calls a function."""
    name = getattr(target, "__name__", "function")
    arguments = ", ".join(_required(parameters(target)))
    return f"Add to the file:\n\ndef amplint_example():\n    return {name}, (...,), {{}}  # {arguments}"


def for_file() -> str:
    """The skeleton of a file's ``amplint_example``."""
    return "Add to the file:\n\ndef amplint_example():\n    return module, args, kwargs"


def _required(found: dict[str, Parameter]) -> list[str]:
    return [n for n, p in found.items() if p.default is Parameter.empty and p.kind not in VARIADIC]


def _skeleton(target: type, line: str) -> str:
    return f"Add to class {target.__name__}:\n\n    @staticmethod\n    def amplint_example():\n        {line}"
