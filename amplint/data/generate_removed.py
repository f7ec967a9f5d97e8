"""Generates ``removed.json``: functions that torch still has and that do nothing but raise, such as ``torch.symeig``.

Usage: ``python -m amplint.data.generate_removed [--out OUT]``, with the torch whose functions are read (a second; CUDA
is not needed). ``raising`` holds their qualified names, ``torch`` the release. A function counts where the first thing
that its source does is to raise.
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


def main() -> None:
    """Write the table to the path given, else beside this file."""
    parser = argparse.ArgumentParser(description="Collect the functions of torch that only raise.")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("removed.json"))
    options = parser.parse_args()
    torch = importlib.import_module("torch")
    head = {
        "generator": f"python -m amplint.data.{Path(__file__).stem}",
        "torch": torch.__version__.partition("+")[0],
    }
    options.out.write_text(json.dumps(head | {"raising": list(removed())}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
