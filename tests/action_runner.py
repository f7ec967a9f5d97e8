"""The steps of action.yml as a runner of GitHub Actions carries them out: those that are shell, for real."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml
from snapshot import ROOT, clean_environment

if TYPE_CHECKING:
    from pathlib import Path

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
EXPRESSION = re.compile(r"\$\{\{ *([^}]*?) *\}\}")


@dataclass(frozen=True)
class Step:
    """A finished step: status, standard output and error together, and its outputs."""

    status: int
    output: str
    outputs: dict[str, str]


def run_step(name: str, folder: Path, temporary: Path, values: dict[str, str], event: dict[str, str]) -> Step:
    """Run the step of this id in ``folder``.

    ``values`` are those of the expressions in its ``env`` that are not the inputs' defaults; ``event`` are variables
    that the runner sets.
    """
    (step,) = (step for step in ACTION["runs"]["steps"] if step.get("id") == name)
    defaults = {f"inputs.{key}": declared["default"] for key, declared in ACTION["inputs"].items()}
    known = {**defaults, **values}
    assert set(values) <= set(re.findall(EXPRESSION, str(step["env"]))), "an expression that the step does not have"
    given = {
        key: EXPRESSION.sub(lambda match: known.get(match[1], f"value of {match[1]}"), value)
        for key, value in step["env"].items()
    }
    outputs = temporary / "outputs"
    outputs.write_text("")
    runner = {"GITHUB_OUTPUT": str(outputs), "RUNNER_TEMP": str(temporary), "GITHUB_WORKSPACE": str(folder)}
    inherited = {key: value for key, value in clean_environment().items() if not key.startswith("GITHUB_")}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder,
        env={**inherited, **given, **runner, **event},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=600,
    )
    written = dict(line.split("=", 1) for line in outputs.read_text().splitlines())
    return Step(done.returncode, done.stdout, written)
