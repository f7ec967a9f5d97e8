"""The GitHub Action: each mode's steps on a pull request of a scratch repository, whose remote is a bare one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import report_readers
from action_runner import ACTION, EXPRESSION, Step, run_step
from ci_scratch import CURED, HAZARD, amplint_command, command, on_the_path
from snapshot import ROOT, copy_project, git

from amplint import __version__

if TYPE_CHECKING:
    from pathlib import Path

UNSAFE = """\
import torch


def masked(scores: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    return scores.half().masked_fill(~keep, -1e9)
"""
OWN = "someone/models"
SCRIPTS = sorted((ROOT / "action").glob("*.sh"))


@dataclass(frozen=True)
class PullRequest:
    """A pull request from ``feature`` to ``main``, checked out as actions/checkout does: its merge, one commit deep."""

    remote: Path
    checkout: Path
    temporary: Path

    def run(self, mode: str, head: str = OWN, event: dict[str, str] | None = None, **inputs: str) -> Step:
        amplint = amplint_command(self.temporary / "bin")
        command(
            self.temporary / "bin" / "reviewdog",
            f'printf "%s\\n" "$REVIEWDOG_GITHUB_API_TOKEN" "$@" >"{self.temporary}/posted.args"\n'
            f'cat >"{self.temporary}/posted"\n',
        )
        values = {
            "github.action_path": str(ROOT),
            "steps.install.outputs.amplint": str(amplint),
            "github.event.pull_request.head.repo.full_name": head,
            "inputs.mode": mode,
            "inputs.token": "secret",
            **{f"inputs.{key}": value for key, value in inputs.items()},
        }
        default = {"GITHUB_BASE_REF": "main", "GITHUB_HEAD_REF": "feature", "GITHUB_REPOSITORY": OWN}
        path = {"PATH": on_the_path(self.temporary / "bin")}
        return run_step(
            "check", self.checkout, self.temporary, values, {**path, **(default if event is None else event)}
        )

    def pushed(self, file: str = "new.py") -> str:
        return git(self.remote, "show", f"feature:{file}")

    def commits(self) -> list[str]:
        return git(self.remote, "log", "--format=%an: %s", "main..feature").splitlines()


def push(folder: Path, branch: str, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", f"to {branch}")
    git(folder, "push", "--quiet", "origin", f"HEAD:refs/heads/{branch}")


@pytest.fixture
def pull_request(tmp_path: Path) -> PullRequest:
    remote, author = tmp_path / "remote.git", tmp_path / "author"
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", str(remote))
    git(remote, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(tmp_path, "clone", "--quiet", str(remote), str(author))
    push(author, "main", {"old.py": HAZARD})
    git(author, "switch", "--quiet", "--create", "feature")
    push(author, "feature", {"new.py": HAZARD})
    git(author, "switch", "--quiet", "--detach", "HEAD~")
    push(author, "main", {"other.py": HAZARD})
    git(author, "merge", "--quiet", "--no-edit", "feature")
    git(author, "push", "--quiet", "origin", "HEAD:refs/pull/1/merge")
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    git(checkout, "init", "--quiet")
    git(checkout, "remote", "add", "origin", remote.as_uri())
    git(
        checkout, "fetch", "--quiet", "--no-tags", "--depth=1", "origin", "+refs/pull/1/merge:refs/remotes/pull/1/merge"
    )
    git(checkout, "checkout", "--quiet", "--force", "refs/remotes/pull/1/merge")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    return PullRequest(remote, checkout, temporary)


def annotated(step: Step) -> list[tuple[str, str]]:
    return re.findall(r"^::error file=([^,]+),.*title=amplint (AMP\d+)", step.output, re.MULTILINE)


def test_annotate_reports_what_the_pull_request_brings(pull_request: PullRequest) -> None:
    step = pull_request.run("annotate")
    assert step.status == 1, step.output
    assert annotated(step) == [("new.py", "AMP105")]
    assert step.outputs["status"] == "1"
    with open(step.outputs["sarif"], encoding="utf-8") as file:
        results: list[dict[str, Any]] = report_readers.sarif(file.read())["results"]
    assert [result["ruleId"] for result in results] == ["AMP105"]


def test_annotate_uploads_what_it_wrote() -> None:
    upload = ACTION["runs"]["steps"][-1]
    assert upload["uses"].startswith("github/codeql-action/upload-sarif@")
    assert upload["with"]["sarif_file"] == "${{ steps.check.outputs.sarif }}"
    assert "!cancelled()" in upload["if"], "findings fail the step before, and are uploaded all the same"


def test_without_a_pull_request_everything_counts(pull_request: PullRequest) -> None:
    step = pull_request.run("annotate", event={"GITHUB_REPOSITORY": OWN})
    assert sorted(annotated(step)) == [("new.py", "AMP105"), ("old.py", "AMP105"), ("other.py", "AMP105")]


def test_a_base_that_is_given(pull_request: PullRequest) -> None:
    git(pull_request.checkout, "fetch", "--quiet", "--depth=1", "origin", "+refs/heads/main:refs/heads/elsewhere")
    assert annotated(pull_request.run("annotate", base="elsewhere")) == [("new.py", "AMP105")]
    step = pull_request.run("annotate", base="elsewhre")
    assert step.status == 2
    assert "did you mean 'elsewhere'?" in step.output
    assert "sarif" not in step.outputs


def test_paths_and_args(pull_request: PullRequest) -> None:
    step = pull_request.run("annotate", paths="old.py\nother.py")
    assert step.status == 0, step.output
    assert step.outputs["status"] == "0"
    assert annotated(pull_request.run("annotate", paths="old.py new.py")) == [("new.py", "AMP105")]
    assert annotated(pull_request.run("annotate", args="--ignore AMP105\n--min-severity error")) == []
    step = pull_request.run("annotate", args="--igonre AMP105")
    assert step.status == 2
    assert "did you mean" in step.output.lower()


def test_inputs_are_never_run(pull_request: PullRequest) -> None:
    step = pull_request.run(
        "annotate", args='--ignore "$(touch ran)"; touch ran', paths="`touch ran`", base="$(touch ran)"
    )
    assert step.status == 2
    assert not list(pull_request.checkout.rglob("ran"))


def test_findings_need_not_fail_the_job(pull_request: PullRequest) -> None:
    step = pull_request.run("annotate", fail="false")
    assert step.status == 0, step.output
    assert annotated(step) == [("new.py", "AMP105")]
    assert pull_request.run("annotate", fail="false", paths="missing").status == 2


def test_suggest_posts_the_fixes(pull_request: PullRequest) -> None:
    step = pull_request.run("suggest")
    assert step.status == 1, step.output
    token, *arguments = (pull_request.temporary / "posted.args").read_text().splitlines()
    assert token == "secret"
    assert {"-f=rdjson", "-reporter=github-pr-review"} <= set(arguments)
    (diagnostic,) = report_readers.diagnostics((pull_request.temporary / "posted").read_text())
    assert diagnostic["location"]["path"] == "new.py"
    assert "(x @ x.t()).to(out.dtype)" in json.dumps(diagnostic["suggestions"])
    assert pull_request.run("suggest", fail="false").status == 0


def test_suggest_posts_nothing_where_amplint_was_called_wrongly(pull_request: PullRequest) -> None:
    step = pull_request.run("suggest", args="--select AMP999")
    assert step.status == 2
    assert not (pull_request.temporary / "posted").exists()


def test_commit_pushes_the_safe_fixes_to_the_branch(pull_request: PullRequest) -> None:
    step = pull_request.run("commit")
    assert step.status == 0, step.output
    assert pull_request.pushed() == CURED
    assert pull_request.pushed("old.py") == HAZARD
    assert pull_request.commits() == ["github-actions[bot]: Apply amplint's safe fixes", "test: to feature"]
    assert "Pushed the safe fixes to feature." in step.output


def test_commit_leaves_unsafe_fixes_to_people(pull_request: PullRequest, tmp_path: Path) -> None:
    author = tmp_path / "author"
    git(author, "switch", "--quiet", "feature")
    push(author, "feature", {"masks.py": UNSAFE, "amplint.toml": "unsafe-fixes = true\n"})
    step = pull_request.run("commit", args="--unsafe-fixes")
    assert step.status == 1, step.output
    assert [file for file, _ in annotated(step)] == ["masks.py"]
    assert pull_request.pushed() == CURED
    assert pull_request.pushed("masks.py") == UNSAFE
    step = pull_request.run("commit")
    assert step.status == 1
    assert len(pull_request.commits()) == 3, "nothing was left to push"


def test_commit_pushes_nothing_to_forks(pull_request: PullRequest) -> None:
    for head in ("fork/models", ""):
        step = pull_request.run("commit", head=head)
        assert step.status == 1
        assert "comes from a fork" in step.output
        assert annotated(step) == [("new.py", "AMP105")]
    assert len(pull_request.commits()) == 1


def test_commit_takes_no_changes_of_earlier_steps(pull_request: PullRequest) -> None:
    (pull_request.checkout / "old.py").write_text("x = 1\n")
    step = pull_request.run("commit")
    assert step.status == 2
    assert "An earlier step changed files." in step.output
    assert len(pull_request.commits()) == 1


def test_commit_pushes_nothing_where_amplint_fails(pull_request: PullRequest) -> None:
    step = pull_request.run("commit", paths="new.py missing.py")
    assert step.status == 2
    assert "nothing is pushed" in step.output
    assert len(pull_request.commits()) == 1


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"mode": "comment"}, "mode is 'comment'; it may be annotate, suggest or commit."),
        ({"mode": "annotate", "fail": "no"}, "fail is 'no'; it may be true or false."),
    ],
)
def test_a_mistyped_input_is_answered_in_one_line(pull_request: PullRequest, inputs: dict[str, str], said: str) -> None:
    step = pull_request.run(**inputs)
    assert step.status == 2
    assert step.output == f"::error title=amplint::{said}\n"


def test_what_the_modes_cannot_do_is_said_in_one_line(pull_request: PullRequest) -> None:
    step = pull_request.run("commit", event={"GITHUB_REPOSITORY": OWN})
    assert (step.status, step.output.count("\n")) == (2, 1)
    assert "this run is not for one" in step.output
    shutil.rmtree(pull_request.checkout / ".git")
    step = pull_request.run("annotate")
    assert (step.status, step.output.count("\n")) == (2, 1)
    assert "put a step with actions/checkout before this one" in step.output


def test_install_from_the_actions_own_checkout(tmp_path: Path) -> None:
    source = copy_project(tmp_path / "action")
    step = run_step("install", tmp_path, tmp_path, {"github.action_path": str(source)}, {})
    assert step.status == 0, step.output
    assert __version__ in step.output
    done = subprocess.run([step.outputs["amplint"], "rules"], capture_output=True, text=True, check=True)
    assert "AMP105" in done.stdout
    values = {"github.action_path": str(source), "inputs.version": "0.0.0.dev0"}
    step = run_step("install", tmp_path, tmp_path, values, {})
    assert step.status != 0
    assert "amplint==0.0.0.dev0" in step.output


def test_scripts_hold_no_expressions() -> None:
    """What a pull request brings, such as the name of its branch, would be run as a part of the script."""
    for step in ACTION["runs"]["steps"]:
        assert not EXPRESSION.search(step.get("run", ""))
    assert len(SCRIPTS) == 2
    for script in SCRIPTS:
        assert "${{" not in script.read_text(encoding="utf-8")
        assert "set -euo pipefail" in script.read_text(encoding="utf-8")


def test_scripts_are_clean_for_shellcheck() -> None:
    done = subprocess.run(["shellcheck", *SCRIPTS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
