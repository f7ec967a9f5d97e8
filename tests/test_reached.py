"""What nothing reaches is left where the project reaches most of what it defines: small, or a library, it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import doubted
import pytest
from doubted import write

from amplint.project.reached import FEWEST, SHARE, reaches_most

if TYPE_CHECKING:
    from pathlib import Path

LEFT = """
import torch
from torch import nn

class Left(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x):
        return self.proj(x.float())

    def run(self, x):
        with torch.cuda.amp.autocast():
            return self(x)

    def learn(self, x, optimizer):
        scaler = torch.amp.GradScaler("cuda")
        scaler.scale(self(x).sum()).backward()
        torch.nn.utils.clip_grad_norm_(self.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
"""
PARTS = "".join(f"def part_{number}():\n    return 1\n\n\n" for number in range(FEWEST))


def uses(count: int) -> str:
    return (
        "from .parts import *\n\n\ndef main():\n" + "".join(f"    part_{n}()\n" for n in range(count)) + "\n\nmain()\n"
    )


def doubts(folder: Path, files: dict[str, str], code: str) -> list[str]:
    """Those about the module that nothing mentions."""
    write(folder / "package", {"__init__.py": "", "layers.py": LEFT, **files})
    return doubted.doubts(folder / "package" / "layers.py", code)


@pytest.mark.parametrize(("code", "name"), [("AMP102", "left-over"), ("AMP601", "unreached"), ("AMP401", "unreached")])
def test_a_program_that_reaches_the_rest_leaves_what_nothing_mentions(tmp_path: Path, code: str, name: str) -> None:
    assert doubts(tmp_path, {"parts.py": PARTS, "run.py": uses(FEWEST)}, code) == [name]


@pytest.mark.parametrize(
    "files",
    [
        {"parts.py": PARTS},
        {"parts.py": PARTS, "run.py": uses(int(FEWEST * SHARE) // 2)},
        {"parts.py": PARTS, "run.py": uses(FEWEST), "all.py": "from .layers import Left\nLeft()\n"},
        {"parts.py": PARTS, "run.py": uses(FEWEST), "__init__.py": "from .layers import Left\n"},
        {"parts.py": PARTS, "run.py": uses(FEWEST), "__init__.py": "from .layers import *\n"},
        {"parts.py": PARTS, "run.py": uses(FEWEST), "use.py": "KINDS = {'left': 'Left'}\n"},
        {"parts.py": PARTS[: len(PARTS) // 2], "run.py": uses(FEWEST // 2)},
        {"parts.py": PARTS, "run.py": uses(FEWEST), "layers.py": LEFT.replace("class Left", "class TestLeft")},
    ],
)
@pytest.mark.parametrize("code", ["AMP102", "AMP601"])
def test_what_is_mentioned_or_a_librarys_is_not_left(tmp_path: Path, files: dict[str, str], code: str) -> None:
    assert doubts(tmp_path, files, code) == []


@pytest.mark.parametrize(
    ("more", "others", "expected"),
    [
        ("left = Left()", {}, ["left-over"]),
        ("left: Left = Left()", {}, ["left-over"]),
        ("left = Left()\nprint(left)", {}, []),
        ("left = Left()\n__all__ = ['left']", {}, []),
        ("left = Left()", {"all.py": "from . import layers\nlayers.left(1)\n"}, []),
        ("left, right = Left(), 1", {}, []),
        ("print(Left())", {}, []),
    ],
)
def test_a_name_that_nothing_mentions_uses_nothing(
    tmp_path: Path, more: str, others: dict[str, str], expected: list[str]
) -> None:
    files = {"parts.py": PARTS, "run.py": uses(FEWEST), "layers.py": f"{LEFT}\n{more}\n", **others}
    assert doubts(tmp_path, files, "AMP102") == expected


def test_where_less_is_reached_it_may_be_what_users_import(tmp_path: Path) -> None:
    files = {"layers.py": LEFT + "\n\nclass Kept:\n    pass\n\nleft = Left()\n", "use.py": "from .layers import Kept\n"}
    assert doubts(tmp_path, files, "AMP102") == []


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        ("", ["left-over"]),
        ("from .layers import Left\n", []),
        ("from .layers import *\n", []),
        ("Left = 1\n", []),
        ("def __getattr__(name):\n    return find(name)\n\n\n", []),
        ("globals().update(found())\n", []),
    ],
)
def test_a_list_of_exports_hands_on_what_its_file_has(tmp_path: Path, bound: str, expected: list[str]) -> None:
    files = {"parts.py": PARTS, "run.py": uses(FEWEST), "more.py": f"{bound}__all__ = ['Left', 'Right']\n"}
    assert doubts(tmp_path, files, "AMP102") == expected


def test_what_stands_beside_what_a_package_hands_out_is_left_where_most_is_reached(tmp_path: Path) -> None:
    files = {"layers.py": LEFT + "\n\nclass Kept:\n    pass\n", "__init__.py": "from .layers import Kept\n"}
    assert doubts(tmp_path / "small", files, "AMP102") == []
    assert doubts(tmp_path / "large", {**files, "parts.py": PARTS, "run.py": uses(FEWEST)}, "AMP102") == ["left-over"]


def test_a_base_of_another_library_leads_nowhere_where_most_is_reached(tmp_path: Path) -> None:
    files = {
        "layers.py": LEFT.replace("(nn.Module)", "(library.Layer, nn.Module)").replace(
            "import nn", "import nn\nimport library"
        )
    }
    files |= {"use.py": "from .more import Kept\nKept()\n", "more.py": "class Kept:\n    pass\n"}
    assert doubts(tmp_path, {**files, "parts.py": PARTS, "run.py": uses(FEWEST)}, "AMP601") == ["unreached"]


def reaches(folder: Path, files: dict[str, str]) -> bool:
    for name, text in files.items():
        (folder / name).write_text(text, newline="")
    return reaches_most(folder)


CHAIN = "".join(f"def link_{n}():\n    return link_{n + 1}()\n\n" for n in range(FEWEST))
LAST = f"class link_{FEWEST}:\n    pass\n\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a.py": CHAIN + LAST}, False),
        ({"a.py": CHAIN + LAST + "link_0()\n"}, True),
        ({"a.py": (CHAIN + LAST + "link_0()\n").replace("\n", "\r\n")}, True),
        ({"a.py": CHAIN + LAST, "b.py": "from a import link_0\n"}, False),
        ({"a.py": CHAIN + LAST, "b.py": "from a import (\n    link_0,\n)\nimport os\n"}, False),
        ({"a.py": CHAIN + LAST, "__init__.py": "from a import link_0\n"}, True),
        ({"a.py": CHAIN + LAST, "b.py": "from a import link_0\n\n\nif True:\n    link_0()\n"}, True),
        ({"a.py": "@register\n" + CHAIN + LAST}, True),
        ({"a.py": CHAIN + "@register(\n    'all',\n)\n" + LAST}, False),
        ({"a.py": "# link_0()\n" + CHAIN + LAST}, False),
        ({"a.py": '"""Try\nlink_0()\n"""\n' + CHAIN + LAST}, False),
        ({"a.py": 'TEXT = "link_0"\n' + CHAIN + LAST}, True),
        ({"a.py": CHAIN.replace("link_1()", "1") + LAST + "link_0()\n"}, False),
        ({"a.py": "async " + CHAIN + LAST + "link_0()\n"}, True),
        ({}, False),
    ],
)
def test_what_is_reached(tmp_path: Path, files: dict[str, str], expected: bool) -> None:
    assert reaches(tmp_path, files) is expected


def test_tests_neither_begin_nor_count(tmp_path: Path) -> None:
    assert not reaches(
        tmp_path, {"a.py": CHAIN + LAST, "b.py": "from a import link_0\n\n\ndef test_it():\n    pass\n\n\nlink_0()\n"}
    )
    parts = PARTS.replace("part_", "test_part_")
    folder = tmp_path / "other"
    folder.mkdir()
    assert reaches(folder, {"a.py": CHAIN + LAST + "link_0()\n", "b.py": parts + parts.replace("_part", "_other")})
