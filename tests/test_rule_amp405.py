"""AMP405: a region in float32 that holds what is cast to float32 in it computes the same where it is off."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplint.engine import Options, check_file
from amplint.plugins import load_rules
from amplint.source import Source

RULES = tuple(rule for rule in load_rules() if rule.code == "AMP405")
CODE = """
import torch


def angles(positions, rates, project):
    with torch.autocast(rates.device.type, dtype=torch.float32):
{body}
    return found
"""


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("found = torch.einsum('n,d->nd', positions.to(torch.float32), rates.float())", 0),
        ("found = positions.float()[:, None] @ rates.to(dtype=torch.float32)[None]", 0),
        ("wide = rates[None].double(); found = torch.outer(positions.float(), wide).cos()", 0),
        ("found = torch.einsum('n,d->nd', positions.to(torch.float32), rates)", 1),
        ("found = project(positions.float())", 1),
        ("found = positions.float() @ rates.to(positions.dtype)", 1),
        ("wide = rates; found = positions.float() @ wide", 1),
        ("found = (positions.float() @ rates.float()).half() @ rates.float()", 1),
        ("found = positions.float().to(torch.float16) @ rates.float()", 1),
    ],
)
def test_a_region_in_float32(body: str, found: int) -> None:
    source = Source(Path("/project/angles.py"), CODE.format(body=f"        {body}").encode())
    assert len(check_file(source, Options(RULES)).findings) == found
