"""What a project makes and calls decides whether code is reached at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amplint.engine import Options, check_file
from amplint.plugins import load_rules, select_rules

if TYPE_CHECKING:
    from pathlib import Path

RULES = select_rules(load_rules(), ("AMP104",), (), ())

NORM = """
import torch
from torch import nn

class Norm(nn.GroupNorm):
    def forward(self, x):
        return super().forward(x.float()).type(x.dtype)

def norm(channels):
    return Norm(32, channels)

def size_of(conv):
    return conv(torch.zeros(1, 3, 64, 64)).numel()
"""
MODEL = """
import torch
from torch import nn
from .norm import norm

class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = norm(channels)

    def forward(self, x):
        return self.norm(x)

class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.embed = nn.Linear(channels, channels)
        self.blocks = nn.ModuleList([Block(channels)])

    def forward(self, x):
        FIRST
        for block in self.blocks:
            x = block(x)
        return x
"""
RAISES = "x = x + self.embed(torch.arange(8.0, dtype=torch.float32)[None])"


def told(folder: Path, **files: str) -> list[str]:
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    return [
        finding.code
        for finding in check_file(package / "norm.py", Options(RULES)).findings
        if finding.message.startswith("group_norm")
    ]


def test_a_class_that_nothing_makes_is_for_the_user_to_run(tmp_path: Path) -> None:
    assert told(tmp_path, norm=NORM) == ["AMP104"]


@pytest.mark.parametrize(("first", "expected"), [(RAISES, []), ("x = self.embed(x)", ["AMP104"])])
def test_a_model_that_raises_first_does_not_reach_its_blocks(tmp_path: Path, first: str, expected: list[str]) -> None:
    assert told(tmp_path, norm=NORM, model=MODEL.replace("FIRST", first)) == expected


MAKER = """
class Maker(nn.Module):
    def __init__(self, train):
        super().__init__()
        MADE
        train(self, made.parameters())

    def forward(self, x):
        return self.made(x)
"""


@pytest.mark.parametrize(("made", "expected"), [("made = norm(8)", []), ("self.made = made = norm(8)", ["AMP104"])])
def test_what_only_a_model_makes_that_asks_for_what_it_never_sets(
    tmp_path: Path, made: str, expected: list[str]
) -> None:
    """Nothing that its ``forward`` runs is of use to anybody."""
    assert told(tmp_path, norm=NORM + MAKER.replace("MADE", made)) == expected


BASE = """
from torch import nn

class Base(nn.Module):
    def __init__(self, head=None):
        super().__init__()
        self.width, self.head = 8, head
        self.stem = nn.Identity()

    def add(self, block):
        self.head = block
"""


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("super().__init__()\n        self.blocks = nn.ModuleList([Block(self.width)])", []),
        ("super().__init__()\n        block = Block(self.width)\n        self.blocks = [block]", []),
        ("super().__init__(Block(8))\n        self.blocks = [self.head]", ["AMP104"]),
        ("super().__init__()\n        self.blocks = [self.add(Block(8))]", ["AMP104"]),
        ("super().__init__()\n        block = Block(8)\n        self.add(block)\n        self.blocks = []", ["AMP104"]),
    ],
)
def test_what_a_base_in_another_file_holds_is_what_the_class_hands_it(
    tmp_path: Path, made: str, expected: list[str]
) -> None:
    """``forward`` uses what the base made before it raises, and the blocks behind."""
    model = MODEL.replace("class Model(nn.Module):", "class Model(Base):").replace(
        "from .norm", "from .base import Base\nfrom .norm"
    )
    model = model.replace("FIRST", f"x = self.head(self.stem(x))\n        {RAISES}")
    start, _, rest = model.rpartition("super().__init__()")
    rest = rest.replace("\n        self.blocks = nn.ModuleList([Block(channels)])", "")
    assert told(tmp_path, norm=NORM, base=BASE, model=start + made + rest) == expected


SPARE = """
class Spare(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = norm(channels)

    def forward(self, x):
        return self.norm(x)
"""
FACTORY = {"build": "from .norm import norm\n\ndef build():\n    return norm(8)\n"}
MENTIONS = {
    "nowhere": ({}, []),
    "nowhere, beside a function that makes it": (FACTORY, ["AMP104"]),
    "by another function": ({"build": "from .model import Spare\n\ndef build():\n    return Spare(8)\n"}, ["AMP104"]),
    "for others": ({"__init__": "from .model import Spare\n"}, ["AMP104"]),
}


@pytest.mark.parametrize(("others", "expected"), MENTIONS.values(), ids=MENTIONS)
def test_what_nothing_mentions_is_no_way_in_beside_one_that_something_does(
    others: dict[str, str], expected: list[str], tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "package"\n')
    assert told(tmp_path, norm=NORM, model=MODEL.replace("FIRST", RAISES) + SPARE, **others) == expected


def test_another_way_in_counts(tmp_path: Path) -> None:
    other = "from .norm import norm\n\nlayer = norm(64)\n"
    assert told(tmp_path, norm=NORM, model=MODEL.replace("FIRST", RAISES), other=other) == ["AMP104"]


def test_a_name_that_is_shown_is_no_way_in(tmp_path: Path) -> None:
    for number, (statement, expected) in enumerate([("print(Norm)", []), ("print(Norm(8, 8))", ["AMP104"])]):
        folder = tmp_path / str(number)
        folder.mkdir()
        other = f"from .norm import Norm\n\n{statement}\n"
        assert told(folder, norm=NORM, model=MODEL.replace("FIRST", RAISES), other=other) == expected


def test_a_public_method_that_raises_first_is_no_other_way_in(tmp_path: Path) -> None:
    """Nor is one that ``forward`` calls, in which it ends."""
    within = MODEL.replace(
        "def forward(self, x):", "def forward(self, x):\n        return self.features(x)\n\n    def features(self, x):"
    )
    other = "\n    def generate(self, x):\n        FIRST\n        return self.blocks[0](x)\n"
    cases = [
        (within.replace("FIRST", RAISES), []),
        (within.replace("FIRST", "x = self.embed(x)"), ["AMP104"]),
        (MODEL.replace("FIRST", RAISES) + other.replace("FIRST", RAISES), []),
        (MODEL.replace("FIRST", RAISES) + other.replace("FIRST", "x = self.embed(x)"), ["AMP104"]),
        (MODEL.replace("FIRST", RAISES) + "\n    def reset(self):\n        for b in self.blocks: b.eval()\n", []),
        (MODEL.replace("FIRST", RAISES) + "\n    def run(self, x):\n        for b in self.blocks: b(x)\n", ["AMP104"]),
    ]
    for number, (model, expected) in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert (number, told(folder, norm=NORM, model=model)) == (number, expected)


FIRST_LAYER = """
from torch import nn

class First(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.inner = nn.Linear(channels, channels)

    def forward(self, x):
        return self.inner(x.float())
"""
LAYERS = """
from torch import nn
from .first import First
from .norm import Norm

class Layers(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = First(channels)
        self.norm = Norm(32, channels)

    def forward(self, x):
        for row in x:
            fitted = self.step(row)
        return fitted

    def step(self, row):
        FIRST
        return self.norm(row)
"""


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ("row = self.first(row)", []),
        ("row = self.first(row) if self.training else row", ["AMP104"]),
        ("row = self.norm(row) + self.first(row)", ["AMP104"]),
    ],
)
def test_behind_what_raises_in_a_third_file_nothing_is_reached(first: str, expected: list[str], tmp_path: Path) -> None:
    norm = NORM.partition("def norm")[0]
    assert told(tmp_path, norm=norm, first=FIRST_LAYER, layers=LAYERS.replace("FIRST", first)) == expected


BUILDER = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.conv = nn.Linear(size, 8)
        self.last = nn.Linear(self.SIZED, 8)

    def forward(self, x):
        return self.last(self.conv(x))

    def sized(self, name):
        return self.run(name).shape[-1]

    def run(self, name):
        return self.get_submodule(name)(torch.zeros(1, 4)) + self.conv(torch.zeros(1, 4))
"""
SIZED = {
    "called": 'sized("conv".encode().decode())',
    "handed_on": 'register_forward_hook(lambda *given: self.sized("conv".encode().decode())) and 8',
    "of_another": 'conv.sized("conv".encode().decode())',
}


@pytest.mark.parametrize(
    ("sized", "further", "expected"),
    [
        ("called", "", 0),
        ("handed_on", "", 1),
        ("of_another", "", 1),
        ("called", "\n    def warm_up(self, name):\n        self.run(name)\n", 1),
        ("called", "\ndef warm_up(net, name):\n    net.sized(name)\n", 1),
    ],
)
@pytest.mark.parametrize("apart", [False, True], ids=["one file", "two files"])
def test_what_only_a_constructor_runs_meets_weights_as_they_were_made(
    sized: str, further: str, expected: int, apart: bool, tmp_path: Path
) -> None:
    code = BUILDER.replace("SIZED", SIZED[sized])
    path = tmp_path / "net.py"
    if apart and further:
        (tmp_path / "other.py").write_text(f"class Base:\n    pass\n{further}")
        further = ""
    path.write_text(code + further)
    rules = select_rules(load_rules(), ("AMP103",), (), ())
    assert len(check_file(path, Options(rules)).findings) == expected


def test_a_constructor_runs_before_the_weights_are_cast() -> None:
    scope: dict[str, Any] = {}
    exec(BUILDER.replace("SIZED", SIZED["called"]), scope)
    net = scope["Net"](4).half()
    with pytest.raises(RuntimeError, match="same dtype"):
        net.run("conv")


DECODER = """
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        return self.linear(x + torch.zeros(8, device=x.device))

class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.attention = Attention()

    def forward(self, x, memory):
        x = self.first(x)
        return self.attention(x) + memory

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.decoder = Decoder()

    def forward(self, x, load):
        return self.decoder(GIVEN, load())
"""


@pytest.mark.parametrize(
    ("given", "other", "rows"),
    [
        ("torch.zeros(8, device=x.device)", "", [20]),
        ("x", "", [11]),
        ("torch.zeros(8, device=x.device)", "from .net import Decoder\n\nDECODER = Decoder()\n", [11, 20]),
    ],
)
def test_what_its_own_file_alone_calls_is_called_as_it_does(
    tmp_path: Path, given: str, other: str, rows: list[int]
) -> None:
    package = tmp_path / "package"
    package.mkdir()
    for name, text in {"__init__": "", "net": DECODER.replace("GIVEN", given), "other": other}.items():
        (package / f"{name}.py").write_text(text)
    options = Options(select_rules(load_rules(), ("AMP102", "AMP103", "AMP104"), (), ()))
    found = check_file(package / "net.py", options).findings
    assert [finding.span.start.row for finding in found if finding.certainty.value != "possible"] == rows
