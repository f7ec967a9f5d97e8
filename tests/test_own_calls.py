"""A module's own ``__call__`` runs around its ``forward``: what that opens holds there, as in torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from amplint.engine import Options, check_file
from amplint.plugins import load_rules, select_rules
from amplint.source import Source

if TYPE_CHECKING:
    from collections.abc import Sequence

RULES = select_rules(load_rules(), ("AMP306",), (), ())
BASE = """
import torch
from torch import nn

class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.region = False

    def __call__(self, PARAMETERS):
        BODY
"""
WITHIN = "with torch.autocast('cuda', enabled=self.region):\n            return "
ANGLES = """
class Angles(Base):
    def __init__(self):
        super().__init__()
        self.register_buffer("frequencies", torch.ones(8))

    def forward(self, x):
        positions = torch.arange(x.shape[1], device=x.device).float()
        return (positions[:, None] @ self.frequencies[None]).cos()
"""
USE = """
class Use(nn.Module):
    def __init__(self):
        super().__init__()
        self.angles = Angles()

    def forward(self, x):
        return CALLED(x)
"""


def base(body: str, parameters: str = "*args, **kwargs") -> str:
    return BASE.replace("BODY", body).replace("PARAMETERS", parameters)


def scenarios(path: Path, code: str) -> Sequence[str]:
    found = check_file(Source(path, code.encode()), Options(RULES, asked=frozenset(("AMP306",)))).findings
    assert len(found) <= 1
    return found[0].scenarios if found else ()


FORWARD = "super().__call__(*args, **kwargs)"
AROUND = ("autocast-fp16", "autocast-bf16")


@pytest.mark.parametrize(
    ("body", "parameters", "expected"),
    [
        (WITHIN + FORWARD, "*args, **kwargs", ()),
        (WITHIN + "self.forward(*args, **kwargs)", "*args, **kwargs", ()),
        (WITHIN + "super().__call__(x)", "x", ()),
        (WITHIN + "super().__call__(x)", "x, *more", ()),
        (f"return {FORWARD}", "*args, **kwargs", AROUND),
        (WITHIN.replace("enabled=self.region", "dtype=torch.bfloat16") + FORWARD, "*args, **kwargs", None),
        (WITHIN + "self.unknown(*args)", "*args, **kwargs", AROUND),
    ],
)
@pytest.mark.parametrize("use", ["", USE.replace("CALLED", "self.angles")])
def test_the_region_of_a_call_is_around_forward(
    body: str, parameters: str, expected: tuple[str, ...] | None, use: str
) -> None:
    found = scenarios(Path("/nowhere/model.py"), base(body, parameters) + ANGLES + use)
    assert found == expected if expected is not None else {*AROUND, "bf16"} <= {*found}


def test_forward_itself_may_be_called() -> None:
    code = base(WITHIN + FORWARD) + ANGLES + USE.replace("CALLED", "self.angles.forward")
    assert scenarios(Path("/nowhere/model.py"), code) == AROUND


def test_a_base_of_another_file(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "base.py").write_text(base(WITHIN + FORWARD))
    head = "import torch\nfrom torch import nn\nfrom .base import Base\n"
    assert scenarios(package / "angles.py", head + ANGLES) == ()
    assert (
        scenarios(
            package / "plain.py",
            head.replace("import Base", "import nn as other") + ANGLES.replace("(Base)", "(nn.Module)"),
        )
        == AROUND
    )


def test_torch_calls_it_so() -> None:
    space: dict[str, type[torch.nn.Module]] = {}
    exec((base(WITHIN + FORWARD) + ANGLES).replace("'cuda'", "'cpu'"), space)
    angles = space["Angles"]()
    x = torch.ones(1, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert angles(x).dtype is torch.float32
        assert angles.forward(x).dtype is torch.bfloat16
