"""What raises in float32 too is not told, and Python itself says what does."""

from __future__ import annotations

import runpy
import sys
from typing import TYPE_CHECKING

import pytest

from amplint.engine import Options, check_file
from amplint.plugins import load_rules, select_rules

pytest.importorskip("torch")

if TYPE_CHECKING:
    from pathlib import Path

RULES = select_rules(load_rules(), ("AMP102",), (), ())

BLOCK = """
import torch
from torch import nn
HEAD

class Block(nn.Module):
    def __init__(self, given=None):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        INIT

    def forward(self, x: torch.Tensor):
        BODY
        return self.linear(x.float())

    def other(self, *given, flag=None):
        OTHER

TAIL
"""
RUN = """
import torch
from package.block import Block

Block()(torch.ones(2, 4))
"""


def write(folder: Path, files: dict[str, str], **parts: str) -> Path:
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    code = BLOCK
    for word, text in {"HEAD": "", "INIT": "pass", "BODY": "pass", "OTHER": "return 1", "TAIL": "", **parts}.items():
        code = code.replace(word, text)
    path = package / "block.py"
    path.write_text(code)
    return path


def told(path: Path) -> bool:
    return bool(check_file(path, Options(RULES)).findings)


def runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the block is made and called in float32."""
    monkeypatch.syspath_prepend(path.parent.parent)
    script = path.parent.parent / "run.py"
    script.write_text(RUN)
    try:
        runpy.run_path(str(script))
    except (NameError, AttributeError, TypeError, ImportError, RuntimeError):
        return False
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "package"]:
            del sys.modules[name]
    return True


PARTS = """
def part(x, scale=1):
    return x * scale

class Part:
    def __init__(self, width, *, depth=1):
        pass

    def scaled(self, x, scale, *, bias=0):
        return x * scale + bias
"""
SIZED = "class Base(nn.Module):\n    def __init__(self, size):\n        super().__init__()\n"
LOOSE = "def loose(f):\n    return lambda *given: given[0]\n\n@loose\ndef part(x):\n    pass\n"
SORT = "from enum import Enum\n\nclass Sort(Enum):\n    A = 1, 2\n\n    def __init__(self, a, b):\n        pass\n"


@pytest.mark.parametrize(
    "parts",
    [
        {"BODY": "x = x * scale"},
        {"INIT": "self.scale = scale"},
        {"INIT": "self.other()", "OTHER": "return scale"},
        {"INIT": "with torch.no_grad():\n            self.other()", "OTHER": "return scale"},
        {"BODY": "try:\n            x = x * scale\n        except ValueError:\n            pass"},
        {"BODY": "try:\n            x = x * scale\n        except Exception as error:\n            raise"},
        {"TAIL": "block = Block(scale)"},
        {"TAIL": "class Inner:\n    width = scale\n"},
        {"HEAD": "def made(width=scale):\n    pass\n"},
        {"HEAD": "@register\ndef made():\n    pass\n"},
        {"BODY": "x = torch.rfft(x, 1)"},
        {"INIT": "self.window = torch.rfft(torch.eye(4), 1)"},
        {"BODY": "x = x * torch.symeig(x.T @ x, eigenvectors=True)[0]"},
        {"BODY": "for y in x:\n            torch.solve(self.linear(y.float()), y)\n        return y"},
        {"HEAD": "from torch import rfft"},
        {"HEAD": "import torch._six"},
        {"HEAD": "from torch.nn import functional as F", "BODY": "x = F.layer_normal(x)"},
        {"HEAD": "from package.parts import part", "BODY": "x = part(x, width=2)"},
        {"HEAD": "from package.parts import part", "BODY": "x = part(x, 2, 3)"},
        {"HEAD": "from package.parts import part", "BODY": "x = part(x, x=x)"},
        {"HEAD": "from package.parts import part", "BODY": "x = part(scale=2) * x"},
        {"HEAD": "from .parts import Part", "INIT": "self.part = Part()"},
        {"HEAD": "from .parts import Part", "INIT": "self.part = Part(4, 2)"},
        {"HEAD": "from . import parts", "INIT": "self.part = parts.Part(4, size=2)"},
        {"INIT": "self.other(wrong=1)"},
        {"HEAD": "from .parts import Part", "INIT": "self.part = Part(4)", "BODY": "x = self.part.scaled(x)"},
        {"HEAD": "from .parts import Part", "BODY": "x = Part(4).scaled(x, 2, 3)"},
        {"HEAD": "from .parts import Part", "BODY": "part = Part(4)\n        x = part.scaled(x, 2, depth=3)"},
        {
            "HEAD": "class Layer(nn.Linear):\n    def __init__(self, size):\n        super().__init__(size, size)\n",
            "INIT": "self.layer = Layer(4, 4)",
        },
        {
            "HEAD": "class Base(nn.Module):\n    def __init__(self, size):\n        super().__init__()\n\n"
            "class Layer(Base):\n    def __init__(self):\n        super().__init__()\n",
            "INIT": "self.layer = Layer()",
        },
        {
            "HEAD": "class Base(nn.Module):\n    def __init__(self, size):\n        super().__init__()\n\n"
            "class Layer(Base):\n    def __init__(self):\n        Base.__init__(self)\n",
            "INIT": "self.layer = Layer()",
        },
        {
            "HEAD": SIZED + "        size * scale\n",
            "INIT": "self.layer = Base(4)",
        },
        {"INIT": "raise TypeError('not yet')\n        self.width = 4"},
        {"INIT": "if given is None:\n            pass\n        raise NameError"},
        {
            "HEAD": SIZED + "        raise AttributeError\n",
            "INIT": "self.layer = Base(4)",
        },
        {"BODY": "torch.optim.lr_scheduler.StepLR(torch.optim.SGD(self.parameters()), 1, verbose=True)"},
    ],
)
def test_what_raises_in_float32_too(parts: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, {"parts": PARTS}, **parts)
    assert (told(path), runs(path, monkeypatch)) == (False, False)


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"BODY": "if x.dim() > 2:\n            x = x * scale"},
        {"BODY": "x = x * scale if x.dim() > 2 else x"},
        {"BODY": "x = (x.dim() > 2 and scale) or x"},
        {"BODY": "compute = torch.symeig"},
        {"BODY": "torch.optim.lr_scheduler.StepLR(torch.optim.SGD(self.parameters()), 1, **{'gamma': 1.0})"},
        {
            "HEAD": "from .parts import Part",
            "INIT": "self.part = Part(4)",
            "BODY": "x = self.part.scaled(x, 2, bias=x)",
        },
        {"HEAD": "from .parts import Part", "BODY": "x = Part(4).scaled(*(x, 2))"},
        {
            "HEAD": "from .parts import Part\n\nclass Own(Part):\n    def scaled(self, x):\n        return x\n",
            "INIT": "self.part: Part = Own(4)",
            "BODY": "x = self.part.scaled(x)",
        },
        {"BODY": "try:\n            torch.symeig(x)\n        except RuntimeError:\n            pass"},
        {"BODY": "change = lambda: scale"},
        {"BODY": "names = [scale for scale in ()]"},
        {"BODY": "x = [x * s for x in () for s in scale] or x"},
        {"BODY": "x: scale = x"},
        {"BODY": "try:\n            x = x * scale\n        except NameError:\n            pass"},
        {"BODY": "try:\n            x = x * scale\n        except:\n            pass"},
        {"BODY": "import contextlib\n        with contextlib.suppress(NameError):\n            x = x * scale"},
        {
            "HEAD": "from contextlib import ExitStack",
            "BODY": "with ExitStack() as s:\n            s.push(lambda *e: True)\n            x = x * scale",
        },
        {
            "HEAD": "from contextlib import suppress as trying",
            "BODY": "with trying(NameError):\n            x = x * scale",
        },
        {"BODY": "if x.dim() < 3:\n            return self.linear(x.float())\n        x = x * scale"},
        {"BODY": "for x in [x]:\n            break\n        else:\n            x = x * scale"},
        {"BODY": "if (scale := 2) > 1:\n            x = x * scale"},
        {"BODY": "match x:\n            case scale:\n                x = x * 2\n        x = scale"},
        {"BODY": "assert x is not None, scale"},
        {"BODY": "x = x * __class__.width", "INIT": "pass\n\n    width = 2\n"},
        {"BODY": "global scale\n        scale = 2\n        x = x * scale"},
        {"BODY": "x = x * scale", "TAIL": "for scale in (1, 2):\n    pass\n"},
        {"BODY": "x = x * scale", "TAIL": "with open(__file__) as scale:\n    scale = 2\n"},
        {"BODY": "x = x * scale", "TAIL": "def later():\n    global scale\n    scale = 2\n\nlater()\n"},
        {"BODY": "x = x * scale", "TAIL": "globals()['scale'] = 2\n"},
        {"BODY": "x = x * scale", "TAIL": "exec('scale = 2')\n"},
        {"BODY": "x = x * scale", "HEAD": "from package.values import *\n"},
        {"BODY": "x = x * scale", "HEAD": "import package.giver\n"},
        {
            "HEAD": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from nowhere import Thing\n",
            "INIT": "self.part: Thing = None",
        },
        {"HEAD": "def made(x: 'scale') -> 'scale':\n    pass\n"},
        {"HEAD": "try:\n    profiled\nexcept NameError:\n    profiled = None\n", "BODY": "profiled"},
        {"TAIL": "if __name__ == '__main__':\n    block = Block(scale)"},
        {"BODY": "if hasattr(torch, 'rfft'):\n            x = torch.rfft(x, 1)"},
        {"BODY": "x = torch.rfft(x, 1)", "HEAD": "torch.rfft = lambda x, n: x\n"},
        {"BODY": "x = torch.rfft(x, 1)", "HEAD": "setattr(torch, 'rfft', lambda x, n: x)\n"},
        {"BODY": "x = torch.rfft(x, 1)", "HEAD": "import package.patch\n"},
        {"HEAD": "try:\n    from torch import rfft\nexcept ImportError:\n    rfft = None\n"},
        {"HEAD": "try:\n    from torch._six import inf\nexcept ModuleNotFoundError:\n    inf = 0\n"},
        {"HEAD": "from package.parts import part", "BODY": "x = part(x, *(), **{'scale': 2})"},
        {"HEAD": "from package.parts import part", "BODY": "x = part(x, *[2])"},
        {"HEAD": "from package.parts import Part", "INIT": "self.part = Part(4, depth=2)"},
        {"HEAD": "from package.parts import part\npart = lambda *given: given[0]\n", "BODY": "x = part(x, 2, 3)"},
        {
            "HEAD": LOOSE,
            "BODY": "x = part(x, 2, 3)",
        },
        {"INIT": "self.other(1, flag=2)"},
        {"INIT": "self.other = lambda wrong: 1\n        self.other(wrong=1)"},
        {
            "HEAD": SORT,
            "INIT": "self.sort = Sort((1, 2))",
        },
        {"HEAD": "def waits():\n    yield scale\n", "BODY": "waits()"},
        {"INIT": "if given:\n            raise TypeError(given)\n        self.width = 4"},
        {"INIT": "if given is None:\n            return\n        raise TypeError(given)"},
        {
            "HEAD": SIZED + "        raise ValueError\n",
            "INIT": "try:\n            self.layer = Base(4)\n        except ValueError:\n            pass",
        },
    ],
)
def test_what_runs_in_float32(parts: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("torch.rfft", raising=False)
    files = {
        "parts": PARTS,
        "values": "scale = 2\n",
        "giver": "import builtins\n\nbuiltins.scale = 2\n",
        "patch": "import torch\n\ntorch.rfft = lambda x, n: x\n",
    }
    path = write(tmp_path, files, **parts)
    try:
        assert (told(path), runs(path, monkeypatch)) == (True, True)
    finally:
        vars(sys.modules["builtins"]).pop("scale", None)
        vars(sys.modules["torch"]).pop("rfft", None)


def test_a_device_that_an_extension_brings(tmp_path: Path) -> None:
    assert told(write(tmp_path, {}, BODY="torch.board.synchronize()"))


def test_what_a_class_below_writes_anew(tmp_path: Path) -> None:
    below = "from .block import Block\n\nclass Below(Block):\n    def other(self):\n        return 2\n"
    assert told(write(tmp_path, {"below": below}, INIT="self.other()", OTHER="return scale"))
    (tmp_path / "package" / "below.py").unlink()
    assert not told(tmp_path / "package" / "block.py")


def test_a_class_below_has_a_constructor_of_its_own(tmp_path: Path) -> None:
    below = "from .block import Block\n\nclass Below(Block):\n    def __init__(self):\n        self.linear = None\n"
    assert told(write(tmp_path, {"below": below}, INIT="self.scale = scale"))


METHODS = """
import torch
from torch import nn


class Steps(BASE):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def loss(self, x):
        return self.linear(x.float())

    def step(self, x: torch.Tensor):
        FIRST
        return self.loss(x)

    def validate(self, x):
        SECOND


class Others(nn.Module):
    def loss(self, x):
        return x

    def forward(self, x):
        return self.loss(x)
"""


@pytest.mark.parametrize(
    ("base", "first", "second", "expected"),
    [
        ("nn.Module", "x = x * scale", "pass", False),
        ("lightning.LightningModule", "x = x * scale", "pass", False),
        ("nn.Module", "x = x * self.scale", "pass", False),
        ("nn.Module", "x = x * 2", "pass", True),
        ("nn.Module", "x = x * scale", "return self.loss(x)", True),
    ],
)
def test_a_method_that_only_what_raises_calls(
    base: str, first: str, second: str, expected: bool, tmp_path: Path
) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    path = package / "steps.py"
    code = METHODS.replace("BASE", base).replace("FIRST", first).replace("SECOND", second)
    path.write_text(f"import lightning\n{code}" if "lightning" in base else code)
    assert told(path) is expected


WAVES = """
import torch
from torch import nn


class Waves(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, t):
        return self.linear(torch.cos(t))

    def plot(self):
        FIRST
        return self.forward(torch.linspace(0, 1, 4, device=self.linear.weight.device).float())

    def show(self):
        SECOND
"""


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("pass", "pass", True),
        ("self.period", "pass", False),
        ("period", "pass", False),
        ("period", "return self.forward(torch.linspace(0, 1, 4, device=self.linear.weight.device).float())", True),
    ],
)
def test_a_caller_that_raises_shows_nothing_of_what_it_calls(
    first: str, second: str, expected: bool, tmp_path: Path
) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    path = package / "waves.py"
    path.write_text(WAVES.replace("FIRST", first).replace("SECOND", second))
    rules = select_rules(load_rules(), ("AMP102", "AMP103", "AMP104"), (), ())
    assert bool(check_file(path, Options(rules)).findings) is expected


def test_what_only_a_function_makes_that_raises(tmp_path: Path) -> None:
    maker = "from .block import Block\n\n\ndef make():\n    FIRST\n    return Block()\n"
    path = write(tmp_path, {"maker": maker.replace("FIRST", "print(scale)")})
    assert not told(path)
    (tmp_path / "package" / "maker.py").write_text(maker.replace("FIRST", "print()"))
    assert told(path)


def test_a_file_of_no_package_may_be_shown_without_what_binds_its_names(tmp_path: Path) -> None:
    path = write(tmp_path, {}, BODY="x = x * scale")
    assert not told(path)
    (tmp_path / "package" / "__init__.py").unlink()
    assert told(path)


def test_a_file_of_a_distribution_has_all_that_it_needs(tmp_path: Path) -> None:
    path = write(tmp_path, {}, BODY="x = x * scale")
    (tmp_path / "package" / "__init__.py").unlink()
    record = tmp_path / "parts-1.0.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text(f"{path.relative_to(tmp_path).as_posix()},,\n")
    assert not told(path)


def test_what_makes_a_module_may_lie_outside_of_the_folder_of_its_file(tmp_path: Path) -> None:
    path = write(tmp_path, {"base": "from torch import nn\n\n\nclass Base(nn.Module):\n    pass\n"})
    inner = tmp_path / "package" / "inner"
    inner.mkdir()
    path = path.rename(inner / "block.py")
    user = """
from package.base import Base
from package.inner.block import Block


class User(Base):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x):
        return self.block(x)
"""
    (tmp_path / "package" / "user.py").write_text(user)
    assert told(path)


MODEL = """
from contextlib import suppress
from torch import nn
from .block import Block

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        FIRST
        self.block = Block()

    def forward(self, x):
        return self.block(x)
"""


@pytest.mark.parametrize(
    ("first", "is_told"),
    [
        ("raise RuntimeError('not supported')", False),
        ("return", False),
        ("pass", True),
        ("if self.training > 1:\n            raise RuntimeError", True),
        ("if self.training:\n            raise RuntimeError\n        else:\n            return", False),
        ("with suppress(RuntimeError):\n            raise RuntimeError", True),
    ],
)
def test_what_only_lines_make_that_are_never_run(first: str, is_told: bool, tmp_path: Path) -> None:
    model = MODEL.replace("FIRST", first)
    path = write(tmp_path, {"model": model, "models": "from .model import Model\n\nMODELS = {'model': Model}\n"})
    assert told(path) == is_told
