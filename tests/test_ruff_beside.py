"""What ruff, beside amplint, does to our comments: README.md says how it leaves them alone."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from conftest import ROOT, amplint

if TYPE_CHECKING:
    from pathlib import Path

LINE = 'lint.external = ["AMP"]'
TEXT = "x = 1  # noqa: AMP104\ny = 1  # amplint: ignore[AMP104]\n"


@pytest.mark.parametrize(("setting", "left"), [(LINE, TEXT), ("", "x = 1\ny = 1  # amplint: ignore[AMP104]\n")])
def test_ruff_keeps_our_codes_where_it_is_told_to(project: Path, setting: str, left: str) -> None:
    (project / "a.py").write_text(TEXT)
    (project / "ruff.toml").write_text(f'{setting}\nlint.select = ["RUF"]\n')
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", "--fix"], capture_output=True, check=False
    )
    assert done.returncode == 0
    assert (project / "a.py").read_text() == left


def test_the_readme_says_it() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert 'external = ["AMP"]' in text


def test_ruff_format_moves_a_comment_to_where_it_still_counts(project: Path) -> None:
    file = project / "a.py"
    file.write_text(
        "from torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.projection = nn.Linear(4, 4)\n\n    def forward(self, x):\n"
        "        projected_input = self.projection(x.float() + x.float())\n        return projected_input\n"
    )
    assert amplint("check").status == 1
    assert amplint("check", "--add-ignore").status == 0
    before = file.read_text()
    subprocess.run([sys.executable, "-m", "ruff", "format", "--isolated", "--no-cache", "-q"], check=True)
    assert file.read_text() != before
    assert amplint("check").status == 0
