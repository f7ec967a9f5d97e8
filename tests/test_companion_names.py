"""What torchvision and torchaudio do not hold any more is known, and read from their wheels."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

from amplint.config import NEWEST_TORCH
from amplint.data.generate_companions import read, table
from amplint.infer.torch_model.companion_names import gone

if TYPE_CHECKING:
    from pathlib import Path

OLD = {
    "torchvision/__init__.py": "from .parts import *\nfrom typing import Any\n",
    "torchvision/parts.py": "import os\n\nurls = {}\n_kept = 1\n\ndef moved(): ...\nclass Old: ...\n",
    "torchvision/left.py": "def left(): ...\n",
    "torchvision/lazy.py": "given = 1\n",
}
NEW = {
    "torchvision/__init__.py": "from .parts import moved\n",
    "torchvision/parts.py": "from .other import moved\n\nif True:\n    _kept = 2\n",
    "torchvision/other.py": "def moved(): ...\n",
    "torchvision/lazy.py": "def __getattr__(name): ...\n",
}


def wheel(folder: Path, version: str, metadata: str, files: dict[str, str]) -> Path:
    path = folder / f"torchvision-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"torchvision-{version}.dist-info/METADATA", f"Version: {version}\n{metadata}")
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def test_what_is_gone_is_read_from_wheels(tmp_path: Path) -> None:
    old = wheel(tmp_path, "0.2", "", OLD)
    middle = wheel(tmp_path, "0.15", "Requires-Dist: torch (==2.0.1)\n", {**NEW, "torchvision/left.py": ""})
    new = wheel(tmp_path, "0.28", "Requires-Dist: torch==2.13.0\n", NEW)
    assert table([read(path) for path in (new, old, middle)]) == {
        "2.0": {"torchvision": "Old urls", "torchvision.parts": "Old urls"},
        "2.13": {"torchvision": "left"},
    }


@pytest.mark.parametrize(
    ("name", "release", "expected"),
    [
        ("torchvision.models.vgg.model_urls", NEWEST_TORCH, "model_urls"),
        ("torchvision.models.vgg.model_urls", (1, 13), None),
        ("torchvision.models.vgg.vgg16", NEWEST_TORCH, None),
        ("torchvision.models.utils.load_state_dict_from_url", NEWEST_TORCH, "utils"),
        ("torchvision.transforms.functional_tensor", (2, 1), None),
        ("torchvision.transforms.functional_tensor", (2, 2), "functional_tensor"),
        ("torchaudio.info", (2, 8), None),
        ("torchaudio.info", (2, 9), "info"),
        ("torchaudio.load", NEWEST_TORCH, None),
        ("torchvision.unheard_of", NEWEST_TORCH, None),
    ],
)
def test_what_is_gone_beside_a_release_of_torch(name: str, release: tuple[int, int], expected: str | None) -> None:
    assert gone(name, release) == expected
