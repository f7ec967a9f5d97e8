"""The recipes of docs/ci.md, as written, in scratch repositories. Those of hooks are in test_pre_commit.py."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from typing import TYPE_CHECKING

import pytest
import report_readers
import yaml
from action_runner import ACTION
from ci_scratch import HAZARD, amplint_command, command, run, valid
from snapshot import ROOT, git

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
TRIED = {
    name: (int(status or 0), script)
    for name, status, script in re.findall(r"<!-- tried: (\w+)(?:, status (\d))? -->\n```sh\n(.*?)```", PAGE, re.DOTALL)
}


def blocks(language: str, containing: str) -> list[str]:
    return [text for text in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if containing in text]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A branch that brings ``new.py``; ``old.py`` was there before. amplint and a pretended reviewdog are beside it."""
    remote, folder = tmp_path / "remote.git", tmp_path / "repository"
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", str(remote))
    git(tmp_path, "clone", "--quiet", str(remote), str(folder))
    git(folder, "checkout", "--quiet", "-B", "main")
    for branch, file in (("main", "old.py"), ("work", "new.py")):
        git(folder, "checkout", "--quiet", "-B", branch)
        (folder / file).write_text(HAZARD)
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message", file)
    git(folder, "push", "--quiet", "origin", "main")
    amplint_command(tmp_path / "bin")
    command(
        tmp_path / "bin" / "reviewdog", f'printf "%s\\n" "$@" >"{tmp_path}/posted.args"\ncat >"{tmp_path}/posted"\n'
    )
    return folder


def tried(name: str, folder: Path) -> str:
    """Run a recipe; its last command leaves with the status that the page says."""
    status, script = TRIED[name]
    done = run(script, folder)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def test_every_recipe_is_tried_here() -> None:
    assert set(TRIED) == {"reviewdog", "branch", "baseline", "junit"}


def test_reviewdog(repository: Path) -> None:
    tried("reviewdog", repository)
    (diagnostic,) = report_readers.diagnostics((repository.parent / "posted").read_text())
    assert diagnostic["location"]["path"] == "new.py"
    posted = (repository.parent / "posted.args").read_text().splitlines()
    (line,) = (line for line in (ROOT / "action" / "check.sh").read_text().splitlines() if "reviewdog " in line)
    assert set(posted) <= set(shlex.split(line)), "the action calls it as the page does"


def test_branch(repository: Path) -> None:
    output = tried("branch", repository)
    assert "--> new.py:6" in output
    assert "+    out.index_add_(0, index, (x @ x.t()).to(out.dtype))" in output
    assert "old.py" not in output


def test_baseline_then_a_new_finding(repository: Path) -> None:
    tried("baseline", repository)
    shutil.copy(repository / "old.py", repository / "newer.py")
    done = run(TRIED["baseline"][1].splitlines()[-1], repository)
    assert done.returncode == 1
    assert re.findall(r"--> (\S+):6:", done.stdout) == ["newer.py"]
    (repository / "pyproject.toml").write_text('[tool.amplint]\nbaseline = "amplint-baseline.json"\n')
    assert run("amplint check --output-format concise", repository).stdout.startswith("newer.py:6:")


def test_junit(repository: Path) -> None:
    tried("junit", repository)
    assert set(report_readers.suites((repository / "amplint.xml").read_text())) == {"new.py", "old.py"}
    (jenkins,) = blocks("groovy", "junit 'amplint.xml'")
    assert f"sh '{TRIED['junit'][1].strip()}'" in jenkins


def test_gitlab(repository: Path) -> None:
    (text,) = blocks("yaml", "gl-code-quality-report")
    valid("vendor.gitlab-ci", repository.parent / ".gitlab-ci.yml", text)
    job = yaml.safe_load(text)["amplint"]
    project = {"CI_PROJECT_DIR": str(repository)}
    script = "set -e\n" + "\n".join(job["script"])
    assert run(script, repository, **project).returncode == 0
    issues = json.loads((repository / job["artifacts"]["reports"]["codequality"]).read_text())
    assert [issue["location"]["path"] for issue in issues] == ["new.py", "old.py"]
    base = git(repository, "rev-parse", "main").strip()
    done = run(script, repository, CI_MERGE_REQUEST_DIFF_BASE_SHA=base, **project)
    assert done.returncode == 1
    assert re.findall(r"--> (\S+):6:", done.stdout) == ["new.py"]


def test_action_inputs_are_those_of_the_page() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \|", PAGE.split("| input |")[1].split("\n\n")[0], re.MULTILINE)
    assert sorted(rows) == sorted(ACTION["inputs"])


def test_action_and_its_workflow_are_valid(tmp_path: Path) -> None:
    valid("vendor.github-actions", ROOT / "action.yml")
    (text,) = blocks("yaml", "on: pull_request")
    valid("vendor.github-workflows", tmp_path / "amplint.yml", text)
