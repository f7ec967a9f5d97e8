"""A small project whose findings rest on many of its files, and what is found in it with and without a cache."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from amplint.cache.checking import checked
from amplint.config import Configurations
from amplint.engine import check_files
from amplint.judging import Judging, judging_options
from amplint.planning import plan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from amplint.engine import Results, Task
    from amplint.finding import FileResult

PACKAGE = {
    "__init__.py": "",
    "scores.py": """import torch
from torch import nn

class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(4, 4)

    def forward(self, x, mask=None):
        scores = self.query(x)
        if mask is not None:
            scores = scores.masked_fill(x > 0, -1e9)
        return scores
""",
    "model.py": """from torch import nn
from .scores import Scores

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scores = Scores()

    def forward(self, x, mask):
        return self.scores(x, mask)
""",
    "pool.py": """import torch
from torch import nn
from .made import table

class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x, index):
        out = table(x)
        out.index_add_(0, index, self.proj(x))
        return out
""",
    "made.py": """import torch

def table(x):
    return torch.zeros(3, 4, device=x.device)
""",
    "helper.py": """import torch
from torch import nn

class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x):
        y = torch.softmax(self.proj(x), -1).half()
        return y / (y.sum() + 1e-8)
""",
    "broken.py": "def (:\n",
    "silenced.py": "import os  # amplint: ignore[AMP101]\n",
    **{f"plain_{number}.py": f"VALUE = {number}\n" for number in range(4)},
}
BESIDE = {
    "pyproject.toml": '[project]\nname = "package"\nversion = "1"\ndependencies = ["torch>=2.4"]\n',
    "train.py": """import torch
from package.model import Model

def main(x, mask):
    with torch.autocast("cuda", dtype=torch.float16):
        return Model()(x, mask)
""",
    "README.md": "A package.\n",
}


def make(folder: Path) -> None:
    """Write the project, a checkout with one package."""
    (folder / "package").mkdir(parents=True)
    for name, text in PACKAGE.items():
        (folder / "package" / name).write_text(text)
    for name, text in BESIDE.items():
        (folder / name).write_text(text)


def tasks_in(folder: Path) -> Sequence[Task]:
    judging = Judging(Configurations(), lambda config, rules: judging_options(config, rules, pedantic=True))
    return plan([str(folder)], judging, []).tasks


def without_a_cache(folder: Path) -> list[FileResult]:
    return _by_path(check_files(tasks_in(folder), 1))


def with_a_cache(folder: Path, cache: Path) -> tuple[list[FileResult], set[str]]:
    """The results, and the names of the files that were checked for them."""
    anew: set[str] = set()

    def check(tasks: Sequence[Task]) -> Results:
        anew.update(task.path.name for task in tasks)
        return check_files(tasks, 1)

    return _by_path(checked(tasks_in(folder), cache, check)), anew


def _by_path(results: Results) -> list[FileResult]:
    return sorted((replace(one, alone=False) for one in results), key=lambda one: str(one.path))
