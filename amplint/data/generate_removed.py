"""Generates ``removed.json``: functions that torch still has and that do nothing but raise, such as ``torch.symeig``,
and what optimizers and schedulers take, of which old code passes more, such as ``verbose``.

Usage: ``python -m amplint.data.generate_removed [--out OUT]``, with the torch whose functions are read (a second; CUDA
is not needed). ``raising`` holds the qualified names of the functions, ``parameters`` those of the classes, each with
the names of its parameters, ``torch`` the release. A function counts where the first thing that its source does is to
raise, a class where it takes no other keywords.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import json
import textwrap
import warnings
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING

from amplint.data.generate_names import MODULES

if TYPE_CHECKING:
    from collections.abc import Iterator

CLASSES = ("torch.optim", "torch.optim.lr_scheduler")
"""The modules whose classes are asked for their parameters."""


def only_raises(function: FunctionType) -> bool:
    """Whether the first statement of a function, behind its docstring, raises."""
    try:
        definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, SyntaxError, TypeError):
        return False
    body = definition.body if isinstance(definition, ast.FunctionDef) else []
    does = (s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)))
    return isinstance(next(does, None), ast.Raise)


def removed() -> Iterator[str]:
    """The qualified names of functions of torch's public modules that only raise."""
    warnings.simplefilter("ignore")
    for module_name in MODULES:
        try:
            module = importlib.import_module(module_name)
        except ImportError:
            continue
        for name in sorted(vars(module)):
            function = getattr(module, name)
            if not name.startswith("_") and isinstance(function, FunctionType) and only_raises(function):
                yield f"{module_name}.{name}"


def parameters() -> Iterator[tuple[str, list[str]]]:
    """The qualified names of public classes that take no other keywords, each with the names of its parameters."""
    for module_name in CLASSES:
        module = importlib.import_module(module_name)
        for name, cls in sorted(vars(module).items()):
            if name.startswith("_") or not inspect.isclass(cls) or not cls.__module__.startswith(module_name):
                continue
            taken = inspect.signature(cls).parameters.values()
            if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in taken):
                yield f"{module_name}.{name}", [parameter.name for parameter in taken]


def main() -> None:
    """Write the table to the path given, else beside this file."""
    parser = argparse.ArgumentParser(description="Collect what torch takes no longer.")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("removed.json"))
    options = parser.parse_args()
    torch = importlib.import_module("torch")
    head = {
        "generator": f"python -m amplint.data.{Path(__file__).stem}",
        "torch": torch.__version__.partition("+")[0],
    }
    table = head | {"raising": list(removed()), "parameters": dict(parameters())}
    options.out.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
