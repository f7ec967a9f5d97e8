"""Machines that tests of preflight make up from real processes: an environment without torch, a ``torch`` package and a
``nvidia-smi`` command that say what they are told to."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import venv
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conftest import amplint

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pytest

TORCH = """
import types
__version__ = {version!r}
version = types.SimpleNamespace(cuda={cuda!r}, hip={hip!r})
_C = types.SimpleNamespace(_cuda_getArchFlags=lambda: {arch!r})
backends = types.SimpleNamespace(mps=types.SimpleNamespace(is_available=lambda: {mps!r}))
_GPUS = {gpus!r}
def _available():
    import warnings
    if {why!r}:
        warnings.warn({why!r})
    return bool(_GPUS)
cuda = types.SimpleNamespace(
    is_available=_available,
    device_count=lambda: len(_GPUS),
    get_device_name=lambda index: _GPUS[index][0],
    get_device_capability=lambda index: _GPUS[index][1],
    get_device_properties=lambda index: types.SimpleNamespace(gcnArchName=_GPUS[index][2]),
    get_arch_list=lambda: {arch!r}.split(),
)
"""


@dataclass(slots=True)
class Answer:
    """Exit status, the JSON document, and stderr of one run."""

    status: int
    report: dict[str, Any]
    stderr: str

    @property
    def ids(self) -> list[str]:
        return [problem["id"] for problem in self.report["problems"]]

    @property
    def places(self) -> list[tuple[str, int, int]]:
        """Id, row and column of every problem in a file, in the order of the report."""
        located = [problem for problem in self.report["problems"] if problem["location"] is not None]
        return [(p["id"], p["location"]["row"], p["location"]["column"]) for p in located]


class Machine:
    """A folder with an interpreter, the packages that it finds, and commands; and no variables about GPUs."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, python: Path) -> None:
        self._monkeypatch = monkeypatch
        self.python = python
        self.packages = folder / "packages"
        self.commands = folder / "commands"
        self.packages.mkdir()
        self.commands.mkdir()
        monkeypatch.setenv("PYTHONPATH", str(self.packages))
        monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # two torches of one size, written within a second
        monkeypatch.setenv("PATH", str(self.commands) + os.pathsep + os.environ["PATH"])
        for name in ("CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
            monkeypatch.delenv(name, raising=False)

    def install(self, name: str, version: str) -> None:
        """The metadata of a package, which is all that preflight reads of it."""
        self.uninstall(name)
        folder = self.packages / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")

    def uninstall(self, name: str) -> None:
        for folder in self.packages.glob(f"{name.replace('-', '_')}-*.dist-info"):
            shutil.rmtree(folder)

    def torch(
        self,
        version: str = "2.6.0+cu124",
        *,
        cuda: str | None = "12.4",
        hip: str | None = None,
        arch: str = "",
        mps: bool = False,
        gpus: Sequence[tuple[str, tuple[int, int], str]] = (),
        why: str = "",
    ) -> None:
        """A torch of that build that sees those GPUs: name, capability, gfx name."""
        self.install("torch", version)
        values = {
            "version": version,
            "cuda": cuda,
            "hip": hip,
            "arch": arch,
            "mps": mps,
            "gpus": list(gpus),
            "why": why,
        }
        self.torch_source(TORCH.format(**values))

    def torch_source(self, source: str) -> None:
        (self.packages / "torch").mkdir(exist_ok=True)
        (self.packages / "torch" / "__init__.py").write_text(source)

    def nvidia_smi(self, *gpus: tuple[str, str], driver: str = "550.54", knows_capability: bool = True) -> None:
        """A command that lists GPUs by name and compute capability, in that order."""
        rows = [
            f"{index}, {name}, GPU-{index}aaa, {driver}" + (f", {capability}" if knows_capability else "")
            for index, (name, capability) in enumerate(gpus)
        ]
        refused = "" if knows_capability else 'case "$1" in *compute_cap*) echo "not a valid field"; exit 2;; esac\n'
        self.command("nvidia-smi", f"{refused}cat <<'END'\n" + "\n".join(rows) + "\nEND\n")

    def command(self, name: str, script: str) -> None:
        path = self.commands / name
        path.write_text(f"#!/bin/sh\n{script}")
        path.chmod(0o755)

    def environment(self, **variables: str) -> None:
        for name, value in variables.items():
            self._monkeypatch.setenv(name, value)

    def preflight(self, *arguments: str) -> Answer:
        """Run the command on this machine."""
        done = amplint("preflight", "--python", str(self.python), "--output-format", "json", *arguments)
        return Answer(done.status, json.loads(done.stdout) if done.stdout else {}, done.stderr)

    def text(self, *arguments: str) -> tuple[int, str]:
        """Run it for its text; the path of the interpreter and its version are cut out."""
        done = amplint("preflight", "--python", str(self.python), *arguments)
        version = ".".join(map(str, sys.version_info[:3]))
        return done.status, done.stdout.replace(str(self.python), "PYTHON").replace(version, "VERSION")


def make_interpreter(folder: Path) -> Path:
    """A Python environment without any package."""
    venv.create(folder, with_pip=False, symlinks=os.name == "posix")
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def write(folder: Path, **files: str) -> None:
    """Write files, ``train_py`` for ``train.py``; the last underscore is the dot."""
    for name, text in files.items():
        stem, _, suffix = name.rpartition("_")
        (folder / f"{stem}.{suffix}").write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
