"""Code below ``if __name__ == "__main__":`` has the precision that the script gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amplint.engine import Options, check_file
from amplint.finding import Certainty
from amplint.plugins import load_rules
from amplint.source import Source

if TYPE_CHECKING:
    from pathlib import Path

RULES = tuple(rule for rule in load_rules() if rule.code == "AMP102")
OPTIONS = Options(RULES, None, "cuda", (2, 13), pedantic=True)
MODEL = """\
import torch
from torch import nn

if {condition}:

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(1, 10)

        def forward(self, t):
            return self.linear(t.float())

    classifier = Classifier(){moved}
"""


@pytest.mark.parametrize(
    ("condition", "moved", "certain"),
    [
        ('__name__ == "__main__"', "", False),
        ('__name__ == "__main__"', ".half()", True),
        ('__name__ == "__main__"', ".to(torch.bfloat16)", True),
        ("torch.cuda.is_available()", "", True),
    ],
)
def test_a_class_of_a_script_has_the_precision_that_the_script_gives_it(
    condition: str, moved: str, certain: bool, tmp_path: Path
) -> None:
    source = Source(tmp_path / "module.py", MODEL.format(condition=condition, moved=moved).encode())
    (finding,) = check_file(source, OPTIONS).findings
    assert (finding.certainty is not Certainty.POSSIBLE) == certain
