"""Files to which no import leads are left over where imports lead to most of a project's many files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from doubted import doubts, write

from amplint.project.stranded import FEWEST, SHARE, is_stranded

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LAYERS = """
from torch import nn

class Left(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x):
        return self.proj(x.float())

MODELS = {"left": Left}
"""
LED = {f"used/part_{number}.py": "def part():\n    return 1\n" for number in range(FEWEST)}
USED = {**LED, "used/__init__.py": "".join(f"from . import part_{number}\n" for number in range(FEWEST))}
START = {"start.py": "from .used import part_1\n", "__init__.py": "", **USED}
TAKING = {"copied/__init__.py": "from .nets import layers\n"}
COPIED = {"copied/__init__.py": "", "copied/nets/__init__.py": ""}


def package_of(folder: Path, files: Mapping[str, str]) -> Path:
    write(folder / "package", files)
    return folder / "package"


@pytest.mark.parametrize(("text", "expected"), [("model: other\n", ["left-over"]), ("model: layers\n", [])])
def test_what_a_stranded_file_defines_is_left_over(tmp_path: Path, text: str, expected: list[str]) -> None:
    package = package_of(tmp_path, {**START, **COPIED, **TAKING, "copied/nets/layers.py": LAYERS})
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.yaml").write_text(text)
    assert doubts(package / "copied/nets/layers.py", "AMP102") == expected


@pytest.mark.parametrize(
    "leading",
    [
        {"more.py": "from .copied.nets import layers\n"},
        {"more.py": "from .copied.nets.layers import Left\n"},
        {"more.py": "def late():\n    from package.copied.nets import (\n        layers,\n    )\n"},
        {"more.py": "import os, package.copied.nets.layers as own\n"},
        {"more.py": "import package.copied\n", **TAKING},
        {"more.py": "from .copied.nets import (\n    a,  # as (b)\n    layers,\n)\n"},
        {"more.py": "from .copied.nets import a, \\\n    layers\n"},
        {"more.py": "import package.copied.nets\n", "copied/nets/__init__.py": "NAMES = {'layers': ['Left']}\n"},
        {"more.py": "import package.copied\n", "copied/__init__.py": "import pkgutil\n"},
        {"more.py": "KIND = 'package.copied.nets.layers.Left'\n"},
        {"more.py": "import importlib\n\ndef f(name):\n    importlib.import_module(f'package.copied.nets.{name}')\n"},
        {"used/part_3.py": "from ..copied.nets import layers\n"},
        {"copied/nets/program.py": "if __name__ == '__main__':\n    pass\n", **TAKING},
        {"copied/nets/layers.py": LAYERS + "\nif __name__ == '__main__':\n    Left()\n"},
        {"copied/nets/test_nets.py": "from . import layers\n\ndef test_it():\n    pass\n"},
    ],
)
def test_what_imports_lead_to_is_not(tmp_path: Path, leading: dict[str, str]) -> None:
    package = package_of(tmp_path, {**START, **COPIED, "copied/nets/layers.py": LAYERS, **leading})
    assert not is_stranded(package, package / "copied/nets/layers.py")


@pytest.mark.parametrize(
    ("leading", "expected"),
    [
        ({}, True),
        ({"more.py": "from .copies.nets import layers\n"}, True),
        ({"more.py": "# from .copied.nets import layers\n"}, True),
        ({"copied/other.py": "from . import layers\n"}, True),
        ({"used/part_3.py": "from .copied import layers\n"}, True),
        ({"used/part_3.py": "from ..copied import layers\n"}, False),
        ({"copied/__init__.py": "import pkgutil\n"}, True),
        ({"copied/__init__.py": "import pkgutil\n", "more.py": "from . import copied\n"}, False),
    ],
)
def test_what_only_the_stranded_import_is(tmp_path: Path, leading: dict[str, str], expected: bool) -> None:
    package = package_of(tmp_path, {**START, **COPIED, "copied/layers.py": LAYERS, **leading})
    assert is_stranded(package, package / "copied/layers.py") is expected


def test_a_project_whose_files_are_for_its_users_strands_none(tmp_path: Path) -> None:
    files = {name: text for name, text in USED.items() if name != "used/__init__.py"}
    imported = "".join(f"from .used import part_{number}\n" for number in range(int(FEWEST * SHARE) - 4))
    package = package_of(tmp_path, {**files, **COPIED, "used/__init__.py": "", "start.py": imported, "copied/a.py": ""})
    (package / "__init__.py").touch()
    assert not is_stranded(package, package / "copied/a.py")


@pytest.mark.parametrize(("more", "expected"), [(0, False), (FEWEST, True)])
def test_nor_does_a_small_one(tmp_path: Path, more: int, expected: bool) -> None:
    files = {f"part_{number}.py": "" for number in range(6 + more)}
    package = package_of(tmp_path, {"__init__.py": "", **files, **COPIED, "copied/a.py": ""})
    assert is_stranded(package, package / "copied/a.py") is expected
