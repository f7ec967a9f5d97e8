"""What code asks of torch's version and names, the release that is judged answers; torch answers the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from amplint.config import Config
from amplint.engine import check_file
from amplint.judging import judging_options
from amplint.plugins import load_rules

if TYPE_CHECKING:
    from pathlib import Path

FILE = """
import distutils.version
import packaging
import pkg_resources
import torch
import torch.nn.functional as F
from packaging import version
from packaging.version import Version
from torch import nn

MAJOR = int(torch.__version__.split(".")[0])
MINOR = int(torch.__version__.split(".")[1])
OLD = version.parse(torch.__version__) < version.parse("2.1")


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        self.fast = self.slow = False
        self.asked = {asked}

    def forward(self, x, mask):
        q, k, v = self.qkv(x).chunk(3, -1)
        a = q @ k.transpose(-2, -1)
        if {test}:
            return F.scaled_dot_product_attention(q, k, v)
        return a.masked_fill(mask == 0, -1e9).softmax(-1) @ v
"""
TRUE = (
    'torch.__version__ >= "1.10"',
    'version.parse(torch.__version__) >= version.parse("2.0.0")',
    'Version(torch.__version__) > Version("2.0")',
    '"1.13" < torch.__version__',
    'not packaging.version.parse(torch.__version__) < packaging.version.Version("1.7.1")',
    "not OLD",
    "MAJOR >= 2",
    "MAJOR > 1 or (MAJOR == 1 and MINOR > 8)",
    'hasattr(F, "scaled_dot_product_attention")',
    'hasattr(torch.nn.functional, "scaled_dot_product_attention")',
    'hasattr(torch, "compile") and torch.__version__ >= "2.0"',
    'hasattr(torch.amp, "custom_fwd")',
    'not hasattr(torch, "_six") or True',
)
WITHOUT_SETUPTOOLS = (
    'distutils.version.LooseVersion(torch.__version__) >= distutils.version.LooseVersion("1.6.0")',
    'pkg_resources.parse_version(torch.__version__) >= pkg_resources.parse_version("1.7")',
)
OPEN = (
    'hasattr(torch, "npu")',
    "torch.__version__ >= x.least",
    "hasattr(self, 'flash')",
    'torch.__version__ == "2.1.0"',
    "not any([self.fast, self.slow])",
)


def _codes(folder: Path, text: str, torch_version: str = "2.13") -> list[str]:
    path = folder / "net.py"
    path.write_text(text)
    options = judging_options(Config(), load_rules(), torch_version=torch_version)
    return [finding.code for finding in check_file(path, options).findings]


@pytest.mark.parametrize("test", [*TRUE, *WITHOUT_SETUPTOOLS])
def test_the_branch_that_torch_takes_is_told(tmp_path: Path, test: str) -> None:
    assert _codes(tmp_path, FILE.format(asked="None", test=test)) == []
    assert _codes(tmp_path, FILE.format(asked="None", test=f"not ({test})")) == ["AMP301"]


@pytest.mark.parametrize("test", TRUE)
def test_torch_answers_the_same(test: str) -> None:
    names: dict[str, object] = {}
    head = (
        FILE.partition("\n\n\nclass")[0].replace("import distutils.version\n", "").replace("import pkg_resources\n", "")
    )
    exec(f"{head}\nanswer = {test}", names)
    assert names["answer"] is True


@pytest.mark.parametrize("test", TRUE[:4] + TRUE[8:12])
def test_what_an_attribute_keeps_of_it_is_settled(tmp_path: Path, test: str) -> None:
    assert _codes(tmp_path, FILE.format(asked=test, test="self.asked")) == []


@pytest.mark.parametrize("test", OPEN)
def test_what_is_not_known_is_open(tmp_path: Path, test: str) -> None:
    assert _codes(tmp_path, FILE.format(asked="None", test=test)) == ["AMP301"]


@pytest.mark.parametrize("test", ['torch.__version__ >= "2.0"', 'hasattr(F, "scaled_dot_product_attention")'])
def test_an_older_release_takes_the_other_branch(tmp_path: Path, test: str) -> None:
    text = FILE.format(asked="None", test=test)
    assert _codes(tmp_path, text, "1.13") == ["AMP301"]


def test_torch_compares_its_version_as_one() -> None:
    assert torch.__version__ >= "2.9"
    assert torch.__version__ < "10.0"
