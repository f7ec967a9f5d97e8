"""What cannot be imported is merely possible: Python itself says which packages those are."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from amplint.config import Config
from amplint.engine import check_file
from amplint.judging import judging_options
from amplint.plugins import load_rules

if TYPE_CHECKING:
    from pathlib import Path

NET = """
from torch import nn
{imports}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x):
        return self.proj(x.float())
"""
PARTS = "class Part:\n    pass\n"
WHOLE: dict[str, str] = {
    "whole.egg-info/PKG-INFO": "Name: whole\n",
    "own/__init__.py": "",
    "own/parts.py": PARTS,
    "own/sub/__init__.py": "",
    "own/sub/more.py": "from own.parts import Part\n",
}


def project(folder: Path, imports: str, others: dict[str, str]) -> Path:
    net = folder / "own" / "sub" / "net.py"
    for name, text in {**WHOLE, **others}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    net.write_text(NET.format(imports=imports))
    return net


def doubts(net: Path) -> list[str]:
    options = judging_options(Config(), load_rules(), pedantic=True, extend_select=["AMP102"])
    found = [f for f in check_file(net, options).findings if f.code == "AMP102"]
    assert len(found) == 1
    return [held.doubt.name for held in found[0].doubts]


def is_imported(folder: Path) -> bool:
    run = subprocess.run([sys.executable, "-c", "import own.sub.net"], cwd=folder, capture_output=True, check=False)
    return run.returncode == 0


@pytest.mark.parametrize(
    ("imports", "others"),
    [
        ("from own.part import Part", {}),
        ("from ..part import Part", {}),
        ("import own.part", {}),
        ("from Own.parts import Part", {}),
        ("from own.parts import Whole", {}),
        ("from own import Part", {}),
        ("from own import Group", {"own/__init__.py": "from .parts import *\n"}),
        ("from own import Group", {"own/__init__.py": "from .sub.all import *\n", "own/sub/all.py": "GroupPart = 1\n"}),
        ("", {"own/__init__.py": "from own.model import Model\n", "own/model.py": "from own import Part\n"}),
        ("", {"own/sub/__init__.py": "from .nothing import Part\n"}),
        ("from sub.more import Part", {}),
        ("from outer.sub.more import Part", {}),
        ("import sub.more", {}),
        ("from own.moved import Part", {"own/moved.py": "from outer.parts import Part\n"}),
    ],
)
def test_what_leads_nowhere(tmp_path: Path, imports: str, others: dict[str, str]) -> None:
    assert doubts(project(tmp_path, imports, others)) == ["not-importable"]
    assert not is_imported(tmp_path)


@pytest.mark.parametrize(
    ("imports", "others"),
    [
        ("from own.parts import Part", {}),
        ("from .. import parts", {}),
        ("from .more import Part", {}),
        ("import own.parts as parts", {}),
        ("try:\n    from own.part import Part\nexcept ImportError:\n    Part = None", {}),
        ("from own.parts import Whole", {"own/parts.py": "globals()['Who' + 'le'] = 1\n"}),
        ("from own.sub import Part", {"own/sub/__init__.py": "from own.sub.more import *\nfrom own.sub import net\n"}),
        ("from own.parts import __doc__", {}),
        ("from own import Group", {"own/__init__.py": "from .all import *\n", "own/all.py": "Group = 1\n"}),
        ("from own import sqrt", {"own/__init__.py": "from math import *\n"}),
        ("from sub.more import Part", {"sub/__init__.py": "", "sub/more.py": PARTS}),
        ("try:\n    from sub.more import Part\nexcept ImportError:\n    Part = None", {}),
        ("from json.decoder import JSONDecoder", {"own/decoder.py": "JSONDecoder = 1\n"}),
    ],
)
def test_what_leads_somewhere(tmp_path: Path, imports: str, others: dict[str, str]) -> None:
    assert doubts(project(tmp_path, imports, others)) == []
    assert is_imported(tmp_path)


@pytest.mark.parametrize(
    ("imports", "others"),
    [
        ("from own import _C", {"setup.py": "CUDAExtension('own._C', [])\n"}),
        ("from own import _C", {"own/_C.cpython-311-x86_64-linux-gnu.so": ""}),
        ("from own.version import number", {".gitignore": "own/version.py\n"}),
        ("from own.frame_pb2 import Frame", {"own/frame.proto": ""}),
    ],
)
def test_what_a_build_makes_is_there(tmp_path: Path, imports: str, others: dict[str, str]) -> None:
    assert doubts(project(tmp_path, imports, others)) == []


def test_a_checkout_may_be_part_of_a_distribution(tmp_path: Path) -> None:
    net = project(tmp_path, "from own.part import Part", {"pyproject.toml": "[project]\nname = 'whole'\n"})
    (tmp_path / "whole.egg-info").rename(tmp_path / "notes")
    assert doubts(net) == []


@pytest.mark.parametrize(
    "others",
    [
        {
            "own/__init__.py": "from .model import Model\n",
            "own/model.py": "import own_parts\n\nModel = own_parts.Part\n",
        },
        {"own/__init__.py": "from .model import *\n", "own/model.py": "from own_parts import Part\n"},
        {"own/__init__.py": "from own_parts import *\n"},
        {"own/__init__.py": "from all import *\n", "own/all/__init__.py": PARTS},
        {"own/__init__.py": "from all import more\n", "own/all/__init__.py": "", "own/all/more.py": PARTS},
        {"own/__init__.py": "import all.more\n", "own/all/__init__.py": "", "own/all/more.py": PARTS},
        {"own/__init__.py": "from .model import Model\n", "own/model.py": "Model = part\n"},
        {"own/__init__.py": "from .model import Model\n", "own/model.py": "from torch._six import Model\n"},
        {"own/__init__.py": "import torch\n\nrfft = torch.rfft\n"},
        {"own/__init__.py": "from collections import OrderedDict, Iterable\n"},
        {"own/__init__.py": "import collections\n\nKINDS = (list, collections.Iterable)\n"},
        {"own/__init__.py": "from torchvision.models.vgg import model_urls, vgg16\n"},
        {"own/__init__.py": "from torchvision.transforms.functional_tensor import rgb_to_grayscale\n"},
        {"own/__init__.py": "import torchaudio\n\nKINDS = torchaudio.list_audio_backends()\n"},
    ],
)
def test_what_a_package_imports_raises(tmp_path: Path, others: dict[str, str]) -> None:
    """It takes the file beside it for one at the top level, or does not run."""
    assert doubts(project(tmp_path, "", {"own/own_parts.py": PARTS, **others})) == ["not-importable"]
    assert not is_imported(tmp_path)


@pytest.mark.parametrize(
    "others",
    [
        {"own/model.py": "import own_parts\n\nModel = own_parts.Part\n"},
        {"own/__init__.py": "from own_parts import Whole\n"},
        {"own/__init__.py": "from all import Whole\n", "own/all/__init__.py": PARTS},
        {"own/__init__.py": "from all.other import Part\n", "own/all/__init__.py": PARTS},
        {"own/__init__.py": "from all import *\n", "own/all/__init__.py": PARTS, "all/__init__.py": ""},
        {"own/__init__.py": "import sys\n\nsys.path.append(__path__[0])\nimport own_parts\n"},
        {"own/__init__.py": "import own_parts\n", "own_parts.py": PARTS},
        {"own/__init__.py": "import own_parts\n", "whole.egg-info/requires.txt": "own-parts>=2\n"},
        {"own/__init__.py": "import json\n", "own/json.py": PARTS},
        {"own/__init__.py": "try:\n    import own_parts\nexcept ImportError:\n    own_parts = None\n"},
        {"own/__init__.py": "try:\n    part\nexcept NameError:\n    part = None\n"},
        {"own/__init__.py": "from collections import OrderedDict\nfrom collections.abc import Iterable\n"},
        {"own/__init__.py": "import collections.abc\n\nKINDS = (list, collections.abc.Iterable)\n"},
        {"own/__init__.py": "import collections\n\nKINDS = (collections.OrderedDict, collections.Counter)\n"},
        {"own/__init__.py": "import collections\n\ncollections.Iterable = None\nKINDS = [collections.Iterable]\n"},
        {"own/__init__.py": "try:\n    from collections import Iterable\nexcept ImportError:\n    Iterable = None\n"},
        {"own/__init__.py": "from torchvision.models.vgg import vgg16\n"},
        {"own/__init__.py": "try:\n    from torchvision.models.vgg import model_urls\nexcept ImportError:\n    pass\n"},
        {"own/__init__.py": "from torchvision.models import vgg\n\nvgg.model_urls = {}\nURLS = vgg.model_urls\n"},
    ],
)
def test_what_a_package_imports_may_be_there(tmp_path: Path, others: dict[str, str]) -> None:
    assert doubts(project(tmp_path, "", {"own/own_parts.py": PARTS, **others})) == []


@pytest.mark.parametrize(("torch", "expected"), [("torch", ["not-importable"]), ("torch<2.0", [])])
def test_an_old_release_of_torch_comes_with_an_old_torchvision(tmp_path: Path, torch: str, expected: list[str]) -> None:
    imports = "from torchvision.models.vgg import model_urls\n"
    others = {"own/__init__.py": imports, "requirements.txt": f"{torch}\n"}
    assert doubts(project(tmp_path, "", others)) == expected


@pytest.mark.parametrize(("torch", "expected"), [("torch", ["not-importable"]), ("torch<2.9", [])])
def test_an_old_release_of_torch_runs_on_an_old_python(tmp_path: Path, torch: str, expected: list[str]) -> None:
    others = {"own/__init__.py": "from collections import Iterable\n", "requirements.txt": f"{torch}\n"}
    assert doubts(project(tmp_path, "", others)) == expected


DEEPER = {"own/deep.py": "from .deeper import Model\n", "own/deeper.py": "from torch._six import Model\n"}


@pytest.mark.parametrize(
    ("imports", "others"),
    [
        ("", {"own/__init__.py": "from .deep import Model\n", **DEEPER}),
        ("", {"own/__init__.py": "from . import whole\n", "own/whole/__init__.py": "from ..deep import *\n", **DEEPER}),
        ("from own.deep import Model", DEEPER),
        ("import own.whole.part", {"own/whole/__init__.py": "import torch._six\n", "own/whole/part.py": PARTS}),
    ],
)
def test_what_is_imported_on_the_way_raises(tmp_path: Path, imports: str, others: dict[str, str]) -> None:
    assert doubts(project(tmp_path, imports, others)) == ["not-importable"]
    assert not is_imported(tmp_path)


@pytest.mark.parametrize(
    ("imports", "others"),
    [
        ("", DEEPER),
        ("", {"own/__init__.py": "try:\n    from .deep import Model\nexcept ImportError:\n    pass\n", **DEEPER}),
        ("", {"own/__init__.py": "def model():\n    from .deep import Model\n    return Model\n", **DEEPER}),
        ("from own.deep import Model", {**DEEPER, "own/deeper.py": "from own.deep import *\n\nModel = 1\n"}),
    ],
)
def test_what_is_not_imported_on_the_way_may_raise(tmp_path: Path, imports: str, others: dict[str, str]) -> None:
    assert doubts(project(tmp_path, imports, others)) == []
