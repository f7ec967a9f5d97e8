"""What nothing in a project takes, of a file that others take from, is merely possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

import doubted
import pytest
from doubted import write

from amplint.project.leftovers import MAX_PARSED

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LAYERS = """
import torch
from torch import nn

class Kept(nn.Module):
    pass

class Left(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x):
        return self.proj(x.float())
"""
TAKEN = {"package/model.py": "from .layers import Kept\n"}


def doubts(
    folder: Path,
    files: Mapping[str, str | None],
    layers: str = LAYERS,
    *,
    named: bool = False,
    code: str = "AMP102",
    at: str = "package/layers.py",
) -> list[str]:
    """Those about the layers; a file without text is not written."""
    write(folder, {"package/__init__.py": "", at: layers, **files})
    return doubted.doubts(folder / at, code, named=named)


@pytest.mark.parametrize(
    "taking",
    [
        "from .layers import Kept\n",
        "from package.layers import Kept\n",
        "from . import layers\nlayers.Kept()\n",
        "from . import layers as parts\nparts.Kept()\n",
        "import package.layers as parts\nparts.Kept()\n",
        'from .layers import Kept\n# Left is not taken\n"""Left would do as well."""\n',
        "from .layers import Kept, Left\nKept()\n",
        "from .layers import Kept, Left as Other\nKept()\n",
        "from .layers import Kept, Left  # noqa: F401\nKept()\n",
        "from .layers import *\nKept().eval()\n",
    ],
)
def test_what_the_project_leaves_is_doubted(tmp_path: Path, taking: str) -> None:
    assert doubts(tmp_path, {"package/model.py": taking}) == ["left-over"]
    assert doubts(tmp_path, {"package/model.py": taking}, named=True) == []


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"package/model.py": "from .layers import Kept, Left\n"},
        {"package/model.py": "from .layers import Kept, Left as Left\nKept()\n"},
        {"package/model.py": "from .layers import Kept, Left as Other\nKept(), Other()\n"},
        {"package/model.py": "from .layers import Kept, Left\nKept()\n__all__ = ['Left']\n"},
        {"package/model.py": "from .layers import Kept, Left\nKept()\neval('Left')()\n"},
        {"package/model.py": "from .layers import *\nKept()\neval('Le' + 'ft')()\n"},
        {"package/model.py": "from .layers import *\nKept()\n", "package/__init__.py": "from .model import *\n"},
        {"package/model.py": "from .layers import *\n"},
        {"package/model.py": "from . import layers\ngetattr(layers, 'Le' + 'ft')()\n"},
        {"package/model.py": "import package.layers\npackage.layers.Kept()\n"},
        {"package/model.py": "from .layers import Kept\nMODELS = {'left': 'Left'}\n"},
        {"package/model.py": "from .layers import Kept\nMODEL = 'package.layers.Left'\n"},
        {**TAKEN, "package/more.py": "import importlib\nlayers = importlib.import_module('package.layers')\n"},
        {**TAKEN, "package/__init__.py": "from . import layers\n"},
        {**TAKEN, "package/__init__.py": "from .layers import Kept\n"},
        {**TAKEN, "setup.py": "", "examples/train.py": "from package.layers import Left\n"},
        {**TAKEN, "pyproject.toml": "", "configs/model.yaml": "target: package.layers.Left\n"},
        {**TAKEN, "package/model.yaml": "target: package.layers.Left\n"},
    ],
)
def test_what_anybody_may_take_is_not(tmp_path: Path, files: dict[str, str]) -> None:
    assert doubts(tmp_path, files) == []


@pytest.mark.parametrize(
    "layers",
    [
        LAYERS + "\nModel = Left\n",
        LAYERS + "\n__all__ = ['Kept', 'Left']\n",
        LAYERS + "\ndef make(name):\n    return globals()[name]()\n",
        LAYERS + "\ndef make(name):\n    return getattr(sys.modules[__name__], name)()\n",
        LAYERS.replace("class Left", "def register(cls):\n    return cls\n\n@register\nclass Left"),
        LAYERS.replace("class Left(nn.Module)", "class Left(Kept)") + "\nKINDS = Kept.__subclasses__()\n",
        LAYERS.replace("class Left(nn.Module)", "class Left(library.Layer)").replace(
            "import nn", "import nn\nimport library"
        ),
        LAYERS.replace("class Left(nn.Module)", "class Left(nn.Module, key='left')"),
    ],
)
def test_what_its_file_uses_or_may_register_is_not(tmp_path: Path, layers: str) -> None:
    assert doubts(tmp_path, TAKEN, layers) == []


REPOSITORY = {"pyproject.toml": "", "package/model.py": "", "programs/train.py": "from package.layers import Kept\n"}


EXTENSION = "from setuptools import Extension, setup\n\nsetup(ext_modules=[Extension('fast', ['fast.c'])])\n"
PACKAGES = EXTENSION.replace("setup(", "setup(packages=['package'], ")


@pytest.mark.parametrize(
    ("further", "expected"),
    [
        ({}, ["left-over"]),
        ({"programs/evaluate.py": "from package.layers import Left\nLeft()\n"}, []),
        ({"programs/evaluate.py": "from package.layers import Left\n"}, ["left-over"]),
        ({"pyproject.toml": "[project]\n", "programs/evaluate.py": "from package.layers import Left\n"}, []),
        ({"other/__init__.py": "from package.layers import Left\n"}, ["left-over"]),
        ({"other/__init__.py": "from package.layers import Left\n", "use.py": "import other\nother.Left()\n"}, []),
        ({"other/__init__.py": "from package.layers import *\n"}, ["left-over"]),
        ({"other/__init__.py": "from package.layers import *\n", "use.py": "import other\ngetattr(other, x)\n"}, []),
        ({"other/__init__.py": "from package.layers import Left\n", "use.py": "import other\ngetattr(other, x)\n"}, []),
        ({"other/__init__.py": "from package.layers import Left\n", "use.py": "import other\nother.__dict__[x]\n"}, []),
        ({"setup.py": "", "other/__init__.py": "from package.layers import *\n"}, []),
        (
            {"use.py": "from package import layers\n\ndef f(layers):\n    return layers\n\nlayers.Kept()\n"},
            ["left-over"],
        ),
        ({"use.py": "from package import layers\n\ndef f(x):\n    return layers\n\nlayers.Kept()\n"}, []),
        ({"use.py": "def f(kind='left'):\n    return kind == 'Left'\n"}, ["left-over"]),
        ({"use.py": "def f(kind='Left'):\n    return kind\n"}, ["left-over"]),
        ({"use.py": "def f(kind='package.layers.Left'):\n    return kind\n"}, []),
        ({"setup.py": "", "use.py": "def f(kind='Left'):\n    return kind\n"}, []),
        ({"use.py": "import package.layers as p\n\ndef f(kind='Left'):\n    return getattr(p, kind)\n"}, []),
        ({"use.py": "from package.layers import Left\nisinstance(x, Left)\n"}, ["left-over"]),
        ({"use.py": "from package.layers import Left\n\ndef f(x: Left) -> Left:\n    pass\n"}, ["left-over"]),
        ({"programs/model.yaml": "target: package.layers.Left\n"}, []),
    ],
)
def test_a_repository_of_programs_is_looked_through_whole(
    tmp_path: Path, further: dict[str, str], expected: list[str]
) -> None:
    """Its folders need no ``__init__``; where nothing says that it is a project, it may be shown in part."""
    plain = {**REPOSITORY, "package/__init__.py": None, **further}
    assert doubts(tmp_path / "project", plain) == expected
    assert doubts(tmp_path / "part", {**plain, "pyproject.toml": None}) == []


def test_a_wheel_that_is_unpacked_is_looked_through_whole(tmp_path: Path) -> None:
    """Of several together, as where they are installed, none is known to be about the files."""
    files = {
        "package/__init__.py": None,
        "one-1.0.dist-info/METADATA": "",
        "train.py": "from package.layers import Kept\nKept()\n",
    }
    assert doubts(tmp_path / "one", files) == ["left-over"]
    assert doubts(tmp_path / "two", {**files, "two-1.0.dist-info/METADATA": ""}) == []
    assert doubts(tmp_path / "none", {**files, "one-1.0.dist-info/METADATA": None}) == []
    assert doubts(tmp_path / "handed", {**files, "package/__init__.py": "from .layers import Kept\n"}) == []


@pytest.mark.parametrize(("setup", "expected"), [("", []), (PACKAGES, []), (EXTENSION, ["left-over"]), ("setup()", [])])
def test_what_builds_extensions_alone_installs_no_module(tmp_path: Path, setup: str, expected: list[str]) -> None:
    files = {**REPOSITORY, "setup.py": setup, "other/__init__.py": "from package.layers import *\n"}
    assert doubts(tmp_path, files) == expected


HELPED = LAYERS.replace("class Left", "class Helper").replace(
    "class Kept", "class Left(nn.Module):\n    of = Helper\n\nclass Kept"
)


def test_what_only_the_left_use_is_left(tmp_path: Path) -> None:
    assert doubts(tmp_path, TAKEN, HELPED) == ["left-over"]


USER = "from .layers import Left\n\nclass User:\n    of = Left\n\nclass Used:\n    pass\n"


@pytest.mark.parametrize(
    ("used", "expected"), [("Used", ["left-over"]), ("User\nUser()", []), ("*", ["left-over"]), ("*\nUser()", [])]
)
def test_so_is_what_another_file_uses_there(tmp_path: Path, used: str, expected: list[str]) -> None:
    program = f"from .layers import Kept\nfrom .user import Used\nprint(Kept, Used)\nfrom .user import {used}\n"
    assert doubts(tmp_path, {"package/user.py": USER, "package/program.py": program}) == expected


def test_what_another_file_uses_that_nobody_takes_from_is_not_left(tmp_path: Path) -> None:
    assert doubts(tmp_path, {**TAKEN, "package/user.py": USER}) == []


@pytest.mark.parametrize(("run", "expected"), [("Kept()", ["left-over"]), ("Left()", []), ("eval('Left')()", [])])
def test_a_program_leaves_what_it_does_not_run(tmp_path: Path, run: str, expected: list[str]) -> None:
    program = f"{LAYERS}\nif __name__ == '__main__':\n    Kept()\n    {run}\n"
    assert doubts(tmp_path, {}, program) == expected


def test_what_the_kept_use_is_not(tmp_path: Path) -> None:
    used = HELPED.replace("    pass", "    of = Left")
    assert doubts(tmp_path, TAKEN, used) == []


@pytest.mark.parametrize(
    ("others", "expected"), [({}, ["left-over"]), ({"package/more.py": "from .layers import again\n"}, [])]
)
def test_those_that_use_each_other_are_left_together(
    tmp_path: Path, others: dict[str, str], expected: list[str]
) -> None:
    circle = LAYERS + "\ndef use(x):\n    return again(Left()(x))\n\ndef again(x):\n    return use(x)\n"
    assert doubts(tmp_path, {**TAKEN, **others}, circle) == expected


def test_an_old_name_is_to_be_replaced_in_what_is_left_too(tmp_path: Path) -> None:
    old = LAYERS.replace(
        "return self.proj(x.float())", "with torch.cuda.amp.autocast():\n            return self.proj(x)"
    )
    assert doubts(tmp_path, TAKEN, old, code="AMP601") == []


OTHERS_OWN = (
    "from .layers import Kept\n\nclass Left:\n    pass\n\ndef make():\n    return Left()\n",
    "from .layers import Kept\nfrom elsewhere import Left\n\ndef make():\n    return Left()\n",
    "from .layers import Kept\nfrom elsewhere import Other as Left\n\ndef make():\n    return Left()\n",
    "from .layers import Kept as Left\n\ndef make():\n    return Left()\n",
    "from .layers import Kept\n\ndef make():\n    return Left()  # a name that is not there\n",
)


@pytest.mark.parametrize("other", OTHERS_OWN)
def test_a_name_that_another_file_has_from_elsewhere_is_another(tmp_path: Path, other: str) -> None:
    assert doubts(tmp_path, {"package/model.py": other}) == ["left-over"]


@pytest.mark.parametrize(("used", "expected"), [("nn.Softmax(1)", ["left-over"]), ("layers.Softmax(1)", [])])
def test_torchs_own_of_that_name_is_another(tmp_path: Path, used: str, expected: list[str]) -> None:
    taking = f"from torch import nn\nfrom . import layers\nfrom .layers import Kept\n\nMODEL = Kept(), {used}\n"
    assert doubts(tmp_path, {"package/model.py": taking}, LAYERS.replace("Left", "Softmax")) == expected


def test_a_name_that_another_file_takes_and_defines_is_taken(tmp_path: Path) -> None:
    other = "try:\n    from .layers import Kept, Left\nexcept ImportError:\n    class Left:\n        pass\n"
    assert doubts(tmp_path, {"package/model.py": other}) == []
    assert doubts(tmp_path, {"package/model.py": OTHERS_OWN[0] + "\nmake.layers.Left()\n"}) == []


@pytest.mark.parametrize(
    ("kept", "finding", "expected"),
    [
        ("Kept", "", ["left-over"]),
        ("Base", "", ["left-over"]),
        ("Kept", "Other.__subclasses__()", ["left-over"]),
        ("Base", "Other.__subclasses__()", []),
        ("Base", "class Other(metaclass=abc.ABCMeta):\n    pass\n", ["left-over"]),
        ("Base", "class Other(metaclass=ABCMetaOfUs):\n    pass\n", []),
    ],
)
def test_what_derives_from_the_left_is_left(tmp_path: Path, kept: str, finding: str, expected: list[str]) -> None:
    layers = LAYERS.replace("class Left(nn.Module)", "class Base(nn.Module):\n    pass\n\nclass Left(Base)")
    assert doubts(tmp_path, {"package/model.py": f"from .layers import Kept, {kept}\n{finding}\n"}, layers) == expected


def test_what_only_its_own_trial_uses_is_left(tmp_path: Path) -> None:
    tried = f"{LAYERS}\ndef _try():\n    Left()(torch.ones(4))\n\nif __name__ == '__main__':\n    _try()\n"
    assert doubts(tmp_path, TAKEN, tried) == ["left-over"]


@pytest.mark.parametrize(
    ("further", "expected"),
    [
        ({}, ["left-over"]),
        ({"use.py": "from package.base import Base\nBase.__subclasses__()\n"}, []),
        ({"use.py": "import inspect, package\ninspect.getmembers(package)\n"}, []),
        ({"setup.py": ""}, ["left-over"]),
    ],
)
def test_what_derives_from_what_is_used_is_found_by_nothing(
    tmp_path: Path, further: dict[str, str], expected: list[str]
) -> None:
    base = "from torch import nn\n\nclass Base(nn.Module):\n    pass\n"
    derived = LAYERS.replace("(nn.Module):\n    def", "(Base):\n    def").replace(
        "import nn", "import nn\nfrom .base import Base"
    )
    assert doubts(tmp_path, {**REPOSITORY, "package/base.py": base, **further}, derived) == expected


OTHER = {
    **REPOSITORY,
    "package/__init__.py": None,
    "other/layers.py": "class Left:\n    pass\n",
    "programs/other/layers.py": "class Left:\n    pass\n",
}


@pytest.mark.parametrize(
    ("taking", "expected"),
    [
        ("from other.layers import Left\n", ["left-over"]),
        ("from .other.layers import Left\n", ["left-over"]),
        ("import other.layers as layers\nlayers.Left()\n", ["left-over"]),
        ("from other import layers\nlayers.Left()\n", ["left-over"]),
        ("from missing.layers import Left\nLeft()\n", []),
        ("from package.layers import Left\nLeft()\n", []),
        ("from package import layers\nlayers.Left()\n", []),
    ],
)
def test_what_is_taken_from_another_file_of_that_name_is_another(
    tmp_path: Path, taking: str, expected: list[str]
) -> None:
    assert doubts(tmp_path, {**OTHER, "programs/more.py": taking}) == expected


ALONE = {
    "pyproject.toml": "",
    "package/__init__.py": None,
    "package/model.py": "import torch\n",
    "train.py": "from package.model import torch\n",
}


@pytest.mark.parametrize(
    ("further", "expected"),
    [
        ({}, ["left-over"]),
        ({"package/use.py": "from .layers import Left\n\ndef make():\n    return Left()\n"}, ["left-over"]),
        ({"package/use.py": "from .layers import Left\n\nLeft()\n"}, []),
        ({"train.py": "import package\n"}, []),
        ({"train.py": None}, []),
        ({"package/__init__.py": "from .layers import Left\n", "use.py": "from package import Left\nLeft()\n"}, []),
        ({"package/use.py": "MODEL = 'layers'\n"}, []),
        ({"package/use.py": '"""What layers do."""\nimport torch\ntorch.layers\n'}, ["left-over"]),
        ({f"package/use{n}.py": "layers = 1\n" for n in range(MAX_PARSED + 1)}, ["left-over"]),
        ({"other/layers.py": "KEPT = 1\n", "more.py": "from other import layers\nlayers.KEPT\n"}, ["left-over"]),
        ({"package/use.py": "from . import (\n    model,\n    layers,\n)\nprint(layers)\n"}, []),
        ({"package/use.py": "from . import (\n    model,  # (kept)\n    layers,\n)\nprint(layers)\n"}, []),
        ({"package/use.py": "from . import model, \\\n    layers\nprint(layers)\n"}, []),
        ({"package/use.py": "import importlib\nimportlib.import_module(f'package.{name}')\n"}, []),
        ({"run.sh": "python -c 'import package.layers'\n"}, []),
        ({"package/__init__.py": "", "setup.py": ""}, []),
        ({"pyproject.toml": "[project]\n"}, []),
    ],
)
def test_a_file_that_nobody_imports_and_that_runs_nothing_is_left(
    tmp_path: Path, further: dict[str, str | None], expected: list[str]
) -> None:
    assert doubts(tmp_path, {**ALONE, **further}) == expected


INSTALLED = {
    "setup.py": "import setuptools\nsetuptools.setup()\n",
    "package/__init__.py": "from .model import Model\n",
    "package/model.py": "class Model:\n    pass\n",
}


@pytest.mark.parametrize(
    ("further", "expected"),
    [
        ({}, ["left-over"]),
        ({"package/use.py": "from .layers import Left\n\nLeft()\n"}, []),
        ({"package/__init__.py": ""}, []),
        ({"package/__init__.py": "from .version import NUMBER\n", "package/version.py": "NUMBER = 1\n"}, []),
        ({"package/__init__.py": "import importlib\nfrom .model import Model\nload = importlib.import_module\n"}, []),
        ({"package/__init__.py": "from .model import Model\nLAZY = ['layers']\n"}, []),
        ({"README.md": "from package.layers import Left\n"}, []),
    ],
)
def test_so_is_one_that_its_package_takes_nothing_of_beside_others(
    tmp_path: Path, further: dict[str, str | None], expected: list[str]
) -> None:
    assert doubts(tmp_path, {**INSTALLED, **further}) == expected


COPIED = {
    "setup.py": "import setuptools\nsetuptools.setup()\n",
    "package/__init__.py": "from .new import Left\n",
    "package/new.py": LAYERS,
    "README.md": "from package import Left\n",
}
AROUND = """
class Around(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Left()

    def forward(self, x):
        return self.part(x)
"""


@pytest.mark.parametrize(
    ("further", "layers", "expected"),
    [
        ({}, LAYERS, ["left-over"]),
        ({}, LAYERS + "\n__all__ = ['Left']\n", ["left-over"]),
        ({}, LAYERS + "\nLeft()\n", []),
        ({}, LAYERS + AROUND, ["left-over"]),
        ({"package/__init__.py": ""}, LAYERS, []),
        ({"package/__init__.py": "from .layers import Left\n"}, LAYERS, []),
        ({"package/__init__.py": "from .new import Around\n", "package/new.py": AROUND}, LAYERS, []),
        (
            {"package/__init__.py": "from .new import Around\n", "package/new.py": AROUND},
            LAYERS + AROUND,
            ["left-over"],
        ),
        ({"README.md": "from package.layers import Left\n"}, LAYERS, []),
        ({"package/use.py": "import importlib\nload = importlib.import_module\n"}, LAYERS, ["left-over"]),
        ({}, LAYERS.replace("class Left", "@torch.compile\nclass Left"), []),
    ],
)
def test_so_is_a_copy_of_what_others_take_from_another_file(
    tmp_path: Path, further: dict[str, str | None], layers: str, expected: list[str]
) -> None:
    assert doubts(tmp_path, {**COPIED, **further}, layers) == expected


@pytest.mark.parametrize(
    ("further", "expected"),
    [
        ({"package/model.py": "from ._parts import Kept\n"}, ["left-over"]),
        ({"package/model.py": "from ._parts import Left\nMODEL = Left\n"}, []),
        ({"package/__init__.py": "from ._parts import Left\n"}, []),
    ],
)
def test_so_is_what_a_private_file_offers_and_nobody_takes(
    tmp_path: Path, further: dict[str, str | None], expected: list[str]
) -> None:
    setup = {"setup.py": "import setuptools\nsetuptools.setup()\n"}
    layers = LAYERS.replace("import torch\n", "import torch\nfrom other import Base\n", 1).replace(
        "Left(nn.Module)", "Left(Base, nn.Module)"
    )
    assert doubts(tmp_path, {**setup, **further}, layers, at="package/_parts.py") == expected


@pytest.mark.parametrize(
    ("using", "expected"),
    [("from ._parts import Left\nLeft()\n", []), ("from ._parts import Kept\nKept()\n", ["left-over"])],
)
def test_what_a_private_package_hands_on_is_taken_from_there(tmp_path: Path, using: str, expected: list[str]) -> None:
    files = {
        "setup.py": "import setuptools\nsetuptools.setup()\n",
        "package/_parts/__init__.py": "from .layers import Kept, Left\n",
        "package/model.py": using,
    }
    assert doubts(tmp_path, files, at="package/_parts/layers.py") == expected


IDLE = """
import warnings
warnings.filterwarnings("ignore")
SIZES = dict(a=1)
try:
    import apex
except ImportError:
    apex = None
if apex:
    fused = apex.fused()
"""


def test_a_file_that_only_names_and_imports_runs_nothing(tmp_path: Path) -> None:
    assert doubts(tmp_path, ALONE, LAYERS + IDLE) == ["left-over"]


@pytest.mark.parametrize(
    "run", ["Left()\n", "for kind in (Left,):\n    kind()\n", "MODEL = Left()\n", "if torch:\n    MODEL = Left()\n"]
)
def test_a_file_that_runs_something_is_a_program(tmp_path: Path, run: str) -> None:
    assert doubts(tmp_path, ALONE, LAYERS + run) == []
