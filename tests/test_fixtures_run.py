"""The fixtures do what they say: the failing form raises where it is marked, the fixed form runs."""

from __future__ import annotations

import importlib.util
import re
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

if TYPE_CHECKING:
    from types import ModuleType

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures" / "incidents"
FOLDERS = sorted(path for path in FIXTURES.iterdir() if (path / "failing.py").is_file())
EXPECT = re.compile(r"# expect: (AMP\d{3}(?:, AMP\d{3})*)$")

each_fixture = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def load(path: Path) -> ModuleType:
    """Import a file by its path, as a fresh module that nothing else sees."""
    spec = importlib.util.spec_from_file_location(f"fixture_{path.parent.name}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def expectations(path: Path) -> dict[int, list[str]]:
    """Line to codes, as the comments give them."""
    found = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if match := EXPECT.search(line):
            found[number] = match[1].split(", ")
        else:
            assert "expect:" not in line, f"{path}:{number}: not a well-formed expectation"
    return found


def reproduce(module: ModuleType) -> None:
    """Run a fixture without leaking a warning, a random state, an autocast state or a default dtype."""
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        try:
            module.reproduce()
        finally:
            assert not torch.is_autocast_enabled("cpu")
            assert not torch.is_autocast_enabled("cuda")
            assert torch.get_default_dtype() == torch.float32


def test_every_incident_is_here() -> None:
    assert {folder.name for folder in FOLDERS} >= {
        "encoder_fast_path",
        "fused_linear_loss",
        "int8_backward",
        "kv_cache_attention",
        "lookup_free_quantizer",
        "lookup_free_quantizer_float",
    }


@each_fixture
def test_failing_form_raises_where_it_is_marked(folder: Path) -> None:
    path = folder / "failing.py"
    module = load(path)
    with pytest.raises(RuntimeError, match=module.ERROR) as caught:
        reproduce(module)

    expected = expectations(path)
    if any("AMP108" in codes for codes in expected.values()):
        return  # reported where the encoder is built, not where it is called
    lines = [frame.lineno for frame in traceback.extract_tb(caught.tb) if frame.filename == str(path)]
    assert lines[-1] in expected


@each_fixture
def test_fixed_form_runs(folder: Path) -> None:
    reproduce(load(folder / "fixed.py"))


@each_fixture
def test_expectations(folder: Path) -> None:
    assert expectations(folder / "failing.py")
    assert not expectations(folder / "fixed.py")
