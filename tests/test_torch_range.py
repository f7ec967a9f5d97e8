"""Which torch a file is judged by: what its project's files require, through the real command and by themselves."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from amplint.config import NEWEST_TORCH
from amplint.torch_range import TorchRange, torch_range

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Project = Callable[[dict[str, str]], Path]

NEWEST = f"{NEWEST_TORCH[0]}.{NEWEST_TORCH[1]}"
LEGACY = """\
import torch
from torch.cuda.amp import GradScaler, autocast


def train(model, batch):
    scaler = GradScaler()
    with autocast():
        scaler.scale(model(batch)).backward()
"""
DRIFT = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(8, dtype=torch.float32)
        self.proj = nn.Linear(8, 8)

    def forward(self, x):
        return self.proj(self.norm(x))
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Writes files below a folder that is the root of a checkout, and gives the folder."""

    def write(files: dict[str, str]) -> Path:
        (tmp_path / ".git").mkdir()
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return tmp_path

    return write


def span(found: TorchRange) -> str:
    oldest, newest = (f"{major}.{minor}" for major, minor in (found.oldest, found.newest))
    return oldest if oldest == newest else f"{oldest} - {newest}"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("requirements.txt", "torch\n", NEWEST),
        ("requirements.txt", "numpy\n", NEWEST),
        ("requirements.txt", "torch==1.12.1+cu113\n", "1.12"),
        ("requirements.txt", "--find-links x\ntorch >= 1.8, < 2  # old\n", "1.8 - 1.13"),
        ("requirements.txt", "torch<2.4\n", "2.3"),
        ("requirements.txt", "torch~=2.1\n", f"2.1 - {NEWEST}"),
        ("requirements.txt", "torch~=2.1.0\n", "2.1"),
        ("requirements.txt", "torch==2.0.*\n", "2.0"),
        ("requirements.txt", "torch!=2.0.0,>=1.13\n", f"1.13 - {NEWEST}"),
        ("requirements.txt", "torch==2.1.2 ; python_version < '3.9'\ntorch>=2.4 ; python_version >= '3.9'\n",
         f"2.1 - {NEWEST}"),
        ("requirements.txt", "torch>=99\n", NEWEST),
        ("requirements.txt", "torch==2.0.0.dev20230118\n", "2.0"),
        ("requirements.txt", "torch @ https://host/whl/torch-2.0.1%2Bcu118-cp310-cp310-linux_x86_64.whl\n", "2.0"),
        ("requirements.txt", "https://host/torch-1.13.1-cp310-cp310-linux_x86_64.whl\n", "1.13"),
        ("requirements.txt", "torch @ git+https://host/torch\n", NEWEST),
        ("requirements-cuda.txt", "torch==2.2.0\n", "2.2"),
        ("requirement.txt", "torch==1.3.1\n", "1.3"),
        ("requirements.txt", "torchvision==0.8.1\ntorchaudio==0.7.0\n", "1.7"),
        ("requirements.txt", "torchvision==0.15.2\n", "2.0"),
        ("requirements.txt", "torch\ntorchvision==0.8.1+cu110\n", "1.7"),
        ("requirements.txt", "torchaudio==2.1.0\n", "2.1"),
        ("requirements.txt", "torch>=2.3,<2.4\ntorchvision==0.8.1\n", "2.3"),
        ("requirements.txt", "torchvision>=0.8\n", NEWEST),
        ("requirements.txt", "torchvision==0.2.1\ntorchmetrics==0.8.1\n", NEWEST),
        ("pyproject.toml", '[project]\ndependencies = ["torch>=2.1"]\n', f"2.1 - {NEWEST}"),
        ("pyproject.toml", '[project]\ndependencies = ["torch>=2.1,<2.3"]\n[dependency-groups]\nold = ["torch==1.5"]\n',
         "2.1 - 2.2"),
        ("pyproject.toml", '[project.optional-dependencies]\na = ["torch==2.0.1"]\nb = ["torch==2.2.*"]\n',
         "2.0 - 2.2"),
        ("pyproject.toml", '[dependency-groups]\ntest = ["torch==2.3.1", {include-group = "x"}]\n', "2.3"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "^1.12"\n', "1.12 - 1.13"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = {version = "~2.1", extras = ["x"]}\n', "2.1"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "2.0.1 || >=2.2,<2.4"\n', "2.0 - 2.3"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "*"\n', NEWEST),
        ("pyproject.toml", '[tool.poetry.group.gpu.dependencies]\ntorch = [{version = "2.1.*"}, {version = "2.3"}]\n',
         "2.1 - 2.3"),
        ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n    torch>=1.9\n", f"1.9 - {NEWEST}"),
        ("setup.cfg", "[options.extras_require]\ngpu = torch==1.10\n", "1.10"),
        ("setup.py", "from setuptools import setup\nsetup(install_requires=['numpy', 'torch>=1.11,<2.1'])\n",
         "1.11 - 2.0"),
        ("setup.py", "deps = []\ndeps.append('torch==1.13.1')\nraise SystemExit('never run')\n", "1.13"),
        ("setup.py", "setup(name='x', keywords=['torch', 'torch==1.1'])\n", NEWEST),
        ("environment.yml", "dependencies:\n  - python=3.9\n  - pytorch=1.12\n", "1.12"),
        ("environment.yml", "dependencies:\n  - pytorch::pytorch=2.1.0=py3.9_cuda12.1_0\n", "2.1"),
        ("environment.yaml", "dependencies:\n  - pytorch>=1.10,<2\n  - pytorch-cuda=12.4\n", "1.10 - 1.13"),
        ("environment.yaml", "dependencies:\n  - pytorch=*=*cuda*\n", NEWEST),
        ("environment.yml", "dependencies:\n  - pytorch==1.13.1=py3.10_0\n", "1.13"),
        ("environment.yml", "dependencies:\n  - pip\n  - pip:\n      - torch==2.2\n", "2.2"),
        ("environment.yml", "dependencies: [unclosed\n", NEWEST),
        ("pyproject.toml", 'torch = "==1.0', NEWEST),
        ("setup.py", "setup(install_requires=['torch==1.0'\n", NEWEST),
    ],
)  # fmt: skip
def test_a_requirement_gives_its_releases(project: Project, name: str, text: str, expected: str) -> None:
    assert span(torch_range(project({name: text}))) == expected


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("pyproject.toml", '[project]\nrequires-python = ">=3.13"\ndependencies = ["torch>=1.13"]\n',
         f"2.5 - {NEWEST}"),
        ("pyproject.toml", '[project]\nrequires-python = ">=3.8"\ndependencies = ["torch>=1.13"]\n',
         f"1.13 - {NEWEST}"),
        ("pyproject.toml", '[project]\nrequires-python = ">=3.12"\ndependencies = ["torch>=1.9,<2.2"]\n', "2.1"),
        ("pyproject.toml", '[project]\nrequires-python = ">=3.12"\ndependencies = ["torch==1.13"]\n', "1.13"),
        ("pyproject.toml", '[project]\nrequires-python = "eleven"\ndependencies = ["torch>=1.13"]\n',
         f"1.13 - {NEWEST}"),
        ("pyproject.toml", '[tool.poetry.dependencies]\npython = "^3.10"\ntorch = ">=1.9"\n', f"1.11 - {NEWEST}"),
        ("pyproject.toml", '[tool.poetry.dependencies]\npython = ">=3.11,<4.0"\ntorch = ">=1.9"\n', f"1.13 - {NEWEST}"),
        ("setup.cfg", "[options]\npython_requires = >=3.10\ninstall_requires =\n    torch>=1.9\n", f"1.11 - {NEWEST}"),
        ("setup.py", "setup(install_requires=['torch>=1.9'], python_requires='>=3.10')\n", f"1.11 - {NEWEST}"),
        ("setup.py", "setup(install_requires=['torch>=1.9'], python_requires=oldest)\n", f"1.9 - {NEWEST}"),
    ],
)  # fmt: skip
def test_no_release_is_promised_that_the_oldest_python_cannot_install(
    project: Project, name: str, text: str, expected: str
) -> None:
    assert span(torch_range(project({name: text}))) == expected


def test_the_weightiest_file_of_the_nearest_folder_decides(project: Project) -> None:
    root = project(
        {
            "setup.py": "setup(install_requires=['torch>=2.0'])\n",
            "requirements.txt": "torch==2.5.1\n",
            "environment.yml": "dependencies: [pytorch=2.6]\n",
            "examples/requirements.txt": "-r ../shared/base.txt\n",
            "examples/deep/er/script.py": "",
            "shared/base.txt": "torch==1.13.1\n-r ../examples/requirements.txt\n",
            "tool/pyproject.toml": "[tool.black]\n",
            "tool/environment.yml": "dependencies: [pytorch=2.1]\n",
            "tool/requirements.txt": "torch==2.2.0\n",
            "vendored/.git/HEAD": "",
        }
    )
    assert span(torch_range(root)) == f"2.0 - {NEWEST}"
    assert span(torch_range(root / "examples" / "deep" / "er")) == "1.13"
    assert span(torch_range(root / "tool")) == "2.2"
    assert span(torch_range(root / "shared")) == f"2.0 - {NEWEST}"
    assert span(torch_range(root / "vendored")) == NEWEST
    assert torch_range(root).stated_in == root / "setup.py"


@pytest.mark.parametrize(
    ("requires", "expected"),
    [
        (["numpy (>=1.20)", "torch (<1.13,>=1.10)", 'torch==1.4; extra == "old"'], "1.10 - 1.12"),
        (["torch==1.13.1; extra == 'torch'", 'torch>=99; python_version < "3" and extra == "x"'], "1.13"),
        (["torch<2.3,>=2.1; python_version >= '3.9'"], "2.1 - 2.2"),
        (["pytorch-lightning==1.0"], NEWEST),
    ],
)
def test_a_package_beside_others_is_judged_by_its_own_metadata(
    project: Project, requires: list[str], expected: str
) -> None:
    stated = "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
    root = project(
        {
            "pyproject.toml": '[project]\ndependencies = ["torch==2.0"]\n',
            "site/The_Dist-1.0.dist-info/METADATA": f"Name: The-Dist\n{stated}\nRequires-Dist: torch==0.4\n",
            "site/The_Dist-1.0.dist-info/RECORD": "pack/__init__.py,sha256=x,0\npack/deep/er.py,,\nalone.py,,\n",
            "site/other-1.0.dist-info/METADATA": "Name: other\nRequires-Python: >=3.10\nRequires-Dist: torch>=1.5\n",
            "site/other-1.0.dist-info/RECORD": "another/__init__.py,,\n",
            "site/pack/deep/er.py": "",
            "site/another/copied/setup.py": 'import setuptools\nsetuptools.setup(install_requires=["torch<1.9"])\n',
            "site/unlisted/file.py": "",
        }
    )
    assert span(torch_range(root / "site" / "pack" / "deep")) == expected
    assert span(torch_range(root / "site" / "another")) == f"1.11 - {NEWEST}"
    assert span(torch_range(root / "site" / "another" / "copied")) == f"1.11 - {NEWEST}"
    assert span(torch_range(root / "site" / "unlisted")) == "2.0"


def test_releases_to_judge_are_the_last_before_each_change() -> None:
    supported = TorchRange((1, 13), (2, 6))
    assert supported.before([(2, 0), (1, 13), (2, 7), (2, 4), (2, 6)]) == [(2, 5), (2, 3), (1, 13)]
    assert TorchRange((2, 6), (2, 6)).before([(2, 6)]) == []


@pytest.mark.parametrize(
    ("requirement", "found", "fixed"),
    [
        ("torch", 2, 2),
        ("torch>=2.4", 2, 2),
        ("torch>=2.0", 2, 1),
        ("torch>=1.12", 2, 0),
        ("torch==2.3.1", 0, 0),
        ("torch>=1.12,<2.4", 0, 0),
    ],
)
def test_what_is_deprecated_is_rewritten_where_its_successor_is_everywhere(
    project: Project, requirement: str, found: int, fixed: int
) -> None:
    root = project({"requirements.txt": requirement + "\n", "src/train.py": LEGACY})
    findings = _findings("check", str(root / "src"), "--select", "AMP601")
    assert len(findings) == found
    assert sum(finding["fix"] is not None for finding in findings) == fixed
    assert sum("where torch is" in finding["message"] for finding in findings) == found - fixed


def test_a_version_that_is_named_wins_over_the_project(project: Project) -> None:
    root = project({"requirements.txt": "torch==1.12\n", "train.py": LEGACY})
    select = ("check", str(root), "--select", "AMP601")
    assert _findings(*select) == []
    assert len(_findings(*select, "--torch-version", "2.6")) == 2
    assert _findings(*select, "--isolated") == []
    (root / "amplint.toml").write_text('torch-version = "2.4"\n')
    assert len(_findings(*select)) == 2
    assert _findings(*select, "--isolated") == []


def _findings(*arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _json(*arguments, "--output-format", "json")
    return found


def _json(*arguments: str) -> Any:
    command = [sys.executable, "-m", "amplint", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode < 2, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("requirement", "told"),
    [
        ("torch>=2.7", None),
        ("torch", None),
        ("torch>=2.4", ", in torch 2.6, which pyproject.toml allows"),
        ("torch>=2.4,<2.6", ""),
        ("torch==2.6.0", ""),
    ],
)
def test_what_fails_only_in_an_older_release_names_it(project: Project, requirement: str, told: str | None) -> None:
    root = project({"pyproject.toml": f'[project]\ndependencies = ["{requirement}"]\n', "block.py": DRIFT})
    messages = [finding["message"] for finding in _findings("check", str(root), "--scenario", "bf16-mixed-params")]
    start = "nn.Linear gets float32 `self.norm(x)` and the bfloat16 weight of `self.proj`, but needs one dtype"
    assert messages == ([] if told is None else [start + told])


def test_dtypes_are_those_of_the_newest_release_allowed(project: Project) -> None:
    root = project({"requirements.txt": "torch>=2.4\n", "block.py": DRIFT})
    assert _normed(root) == "bfloat16"
    (root / "requirements.txt").write_text("torch==2.6\n")
    assert _normed(root) == "float32"


def _normed(root: Path) -> object:
    command = ("dtypes", str(root / "block.py"), "--scenario", "bf16-mixed-params", "--output-format", "json")
    rows = _json(*command)["files"][0]["expressions"]
    return next(row["dtype"] for row in rows if row["location"] == {"row": 12, "column": 26})


def test_requirements_are_read_only_where_torch_is_named(project: Project) -> None:
    root = project(
        {"setup.py": "setup(install_requires=['numpy>=1.2'])\n", "environment.yml": "dependencies: [numpy]\n"}
    )
    code = (
        "import sys; from pathlib import Path; from amplint.torch_range import torch_range;"
        f"torch_range(Path({str(root)!r})); print([m for m in ('packaging', 'yaml', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


FILLED = """\
import torch
from torch import nn


class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)

    def forward(self, x, mask):
        return self.proj(x).masked_fill(mask, -1e9)
"""


@pytest.mark.parametrize(
    ("requirement", "scenarios"),
    [
        ("torch==1.5.1", ["fp16"]),
        ("torch==1.6.0", ["autocast-fp16"]),
        ("torch>=1.2", ["autocast-fp16"]),
    ],
)
def test_before_autocast_nobody_runs_under_it(project: Project, requirement: str, scenarios: list[str]) -> None:
    root = project({"requirements.txt": f"{requirement}\n", "scores.py": FILLED})
    (finding,) = _findings("check", str(root), "--select", "AMP301")
    assert finding["scenarios"] == scenarios
    (named,) = _findings("check", str(root), "--select", "AMP301", "--scenario", "autocast-fp16")
    assert named["scenarios"] == ["autocast-fp16"]


UPCAST = """\
import torch
from torch import nn


class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)

    def forward(self, x):
        return self.proj(x.float())
"""


@pytest.mark.parametrize(
    ("requirement", "scenarios"),
    [
        ("torch==1.9.1", ["fp16"]),
        ("torch==1.10.0", ["fp16", "bf16", "bf16-mixed-params"]),
        ("torch>=1.4", ["fp16", "bf16", "bf16-mixed-params"]),
    ],
)
def test_before_bfloat16_ran_on_cuda_nobody_runs_in_it(
    project: Project, requirement: str, scenarios: list[str]
) -> None:
    root = project({"requirements.txt": f"{requirement}\n", "scores.py": UPCAST})
    (finding,) = _findings("check", str(root), "--select", "AMP102")
    assert finding["scenarios"] == scenarios
    (named,) = _findings("check", str(root), "--select", "AMP102", "--scenario", "bf16")
    assert named["scenarios"] == ["bf16"]
