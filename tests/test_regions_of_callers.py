"""Functions whose callers all switch autocast off around the call."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import torch

from amplint.engine import Options, check_file
from amplint.plugins import load_rules, select_rules

if TYPE_CHECKING:
    from pathlib import Path

RULES = select_rules(load_rules(), ("AMP105",), (), ())
TARGETS = """\
import torch


{decorator}
def targets(points: torch.Tensor, pose: torch.Tensor):
    found = torch.zeros(4, 4, device=points.device)
    found[torch.arange(4)] = points @ pose
    return found
"""
TRAINING = """\
import torch
from .targets import targets


class Training:
    def step(self, points, pose):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            {call}
"""
INSIDE = "\n                return targets(points, pose)"
OFF = {
    "a region": f'with torch.autocast("cuda", enabled=False):{INSIDE}',
    "by keyword": f'with torch.autocast(enabled=False, device_type="cuda"):{INSIDE}',
    "the deprecated class": f"with torch.cuda.amp.autocast(False):{INSIDE}",
    "in a branch": 'with torch.autocast("cuda", enabled=False):\n'
    "                if len(points) > 1:\n                    return targets(points, pose)",
}
ON = {
    "no region": "return targets(points, pose)",
    "on again": 'with torch.autocast("cuda", enabled=False):\n'
    '                with torch.autocast("cuda", dtype=torch.bfloat16):\n'
    "                    return targets(points, pose)",
    "of another device, deprecated": f"with torch.cpu.amp.autocast(False):{INSIDE}",
    "of another device": f'with torch.autocast("xpu", enabled=False):{INSIDE}',
    "behind it": 'with torch.autocast("cuda", enabled=False):\n                pass\n'
    "            return targets(points, pose)",
}


def told(folder: Path, call: str, decorator: str = "") -> bool:
    package = folder / "package"
    package.mkdir()
    (folder / "pyproject.toml").write_text("[project]\nname = 'package'\n")
    files = {"__init__": "", "targets": TARGETS.format(decorator=decorator), "training": TRAINING.format(call=call)}
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    return bool(check_file(package / "targets.py", Options(RULES)).findings)


def runs(call: str) -> bool:
    """Whether it runs where CUDA and the CPU change places: the CPU's autocast casts products too."""
    code = TARGETS.format(decorator="") + TRAINING.format(call=call).replace("from .targets import targets", "")
    names: dict[str, Any] = {}
    exchanged = {"cuda": "cpu", "cpu": "cuda"}
    exec(re.sub(r"\b(cuda|cpu)\b", lambda found: exchanged[found[0]], code), names)
    try:
        names["Training"]().step(torch.ones(4, 4), torch.ones(4, 4))
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("decorator", ["", "@torch.no_grad()", "from torch import no_grad as quiet\n\n@quiet()"])
@pytest.mark.parametrize("name", OFF)
def test_what_is_called_with_autocast_off_has_float32(name: str, decorator: str, tmp_path: Path) -> None:
    assert runs(OFF[name])
    assert not told(tmp_path, OFF[name], decorator)


@pytest.mark.parametrize("name", ON)
def test_what_is_called_with_autocast_on_is_told(name: str, tmp_path: Path) -> None:
    assert not runs(ON[name])
    assert told(tmp_path, ON[name])


def test_what_is_decorated_may_be_called_otherwise(tmp_path: Path) -> None:
    assert told(tmp_path, OFF["a region"], "@torch.jit.script")
