"""Programs of a repository are run from its root: their absolute imports start there, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from conftest import amplint

if TYPE_CHECKING:
    from pathlib import Path

LAYERS = """import torch
from torch import nn


class Positions(nn.Module):
    def forward(self, x):
        return torch.arange(4, dtype=torch.float32, device=x.device).expand_as(x)
"""
MODEL = """from torch import nn

from parts.layers import Positions


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.positions = Positions()
        self.project = nn.Linear(4, 4)

    def forward(self, x):
        return self.project(self.positions(x))
"""


def told(folder: Path, **files: str) -> bool:
    """Whether the mismatch in the model is found, which only the layers show."""
    for name, text in {"programs/model.py": MODEL, "parts/layers.py": LAYERS, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return "nn.Linear gets float32" in amplint("check", "--scenario", "fp16", str(folder / "programs/model.py")).stdout


@pytest.mark.parametrize("mark", ["pyproject.toml", "setup.cfg", ".git/HEAD"])
def test_imports_start_at_the_root_of_the_project(tmp_path: Path, mark: str) -> None:
    assert told(tmp_path, **{mark: ""})


def test_what_is_nearer_is_taken(tmp_path: Path) -> None:
    near = LAYERS.replace("torch.arange(4, dtype=torch.float32, device=x.device).expand_as(x)", "x")
    assert not told(tmp_path, **{"setup.py": "", "programs/parts/layers.py": near})


def test_above_what_is_no_project_nothing_is_looked_for(tmp_path: Path) -> None:
    assert not told(tmp_path)
    assert not told(tmp_path / "outer", **{"programs/setup.py": ""})


def test_a_package_in_which_folders_are_none_is_one_all_the_same(tmp_path: Path) -> None:
    model = MODEL.replace("from parts.layers", "from package.parts.layers")
    files = {"package/__init__.py": "", "package/parts/layers.py": LAYERS, "package/models/model.py": model}
    for name, text in {"setup.py": "", **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    checked = amplint("check", "--scenario", "fp16", str(tmp_path / "package/models/model.py"))
    assert "nn.Linear gets float32" in checked.stdout


def copied(folder: Path, module: str, *, packages: tuple[str, ...] = ("", "around", "around/parts")) -> bool:
    """Whether the mismatch is found in a model of the package ``parts`` that was copied into another one."""
    root = folder / "outer"
    text = MODEL.replace("from parts.layers", f"from {module}")
    for name, content in {"around/parts/layers.py": LAYERS, "around/parts/models/model.py": text}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    for name in (*packages, "around/parts/models"):
        (root / name / "__init__.py").touch()
    model = root / "around/parts/models/model.py"
    return "nn.Linear gets float32" in amplint("check", "--scenario", "fp16", str(model)).stdout


def test_a_package_copied_into_another_one_imports_itself_as_before(tmp_path: Path) -> None:
    assert copied(tmp_path, "parts.layers")
    assert copied(tmp_path / "site-packages", "parts.layers"), "also where that is installed"


def test_so_does_one_beside_it(tmp_path: Path) -> None:
    (tmp_path / "outer/around/more").mkdir(parents=True)
    (tmp_path / "outer/around/more/__init__.py").touch()
    (tmp_path / "outer/around/more/layers.py").write_text(LAYERS)
    assert copied(tmp_path, "more.layers")


def test_a_module_alone_may_be_any_library(tmp_path: Path) -> None:
    (tmp_path / "outer/around/parts/models").mkdir(parents=True)
    (tmp_path / "outer/around/parts/models/layers.py").write_text(LAYERS)
    assert not copied(tmp_path, "layers")


@pytest.mark.parametrize("taken", ["outer.parts.layers", "..layers", "...parts.layers"])
@pytest.mark.parametrize("stars", [False, True])
@pytest.mark.parametrize("depth", [0, 3])
@pytest.mark.parametrize("known", [True, False])
def test_a_folder_below_a_package_belongs_to_it_without_an_init(
    tmp_path: Path, taken: str, stars: bool, depth: int, known: bool
) -> None:
    """As Python has it (PEP 420), however many folders lie between."""
    package = tmp_path.joinpath("outer", *("between",) * depth)
    prefix = ".".join(("outer", *("between",) * depth))
    text = MODEL.replace("from parts.layers", f"from {taken.replace('outer', prefix)}")
    text = text.replace("import Positions", "import *") if stars else text
    for name, content in {"parts/layers.py": LAYERS, "parts/models/model.py": text}.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(content)
    if known:
        (tmp_path / "outer/__init__.py").touch()
    checked = amplint("check", "--scenario", "fp16", str(package / "parts/models/model.py"))
    assert ("nn.Linear gets float32" in checked.stdout) == known
