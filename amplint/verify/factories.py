"""The function that a user names to build a module: a plain one, or a pytest fixture."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from amplint.verify.loading import LoadError, find, load_file, make_importable, one_line
from amplint.verify.pytest_fixtures import fixture_named


def find_factory(reference: str) -> Any:
    """The function that ``FILE.py::name`` or ``package.module:name`` names; a pytest fixture is called as a function.

    Raises LoadError.
    """
    file, separator, name = reference.partition("::")
    try:
        if separator:
            make_importable(Path(file).parent)
            module = load_file(Path(file))
        else:
            file, _, name = reference.partition(":")
            module = importlib.import_module(file)
        return fixture_named(module, name) or find(module, name)
    except LoadError:
        raise
    except Exception as error:
        raise LoadError(f"cannot import the factory's {Path(file).name}: {one_line(error)}") from error
