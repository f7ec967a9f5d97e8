"""Shell completion, as docs/usage.md says to set it up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

MAIN = "import sys; from amplint.cli.main import main; main(prog_name='amplint')"
PAGE = (ROOT / "docs" / "usage.md").read_text(encoding="utf-8")


def complete(**environment: str) -> str:
    """What the command prints when a shell asks it."""
    done = subprocess.run(
        [sys.executable, "-c", MAIN], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("bash", "complete -o nosort -F"),
        ("zsh", "compdef _amplint_completion"),
        ("fish", "complete --no-files"),
    ],
)
def test_source(shell: str, line: str) -> None:
    source = complete(_AMPLINT_COMPLETE=f"{shell}_source")
    assert line in source
    assert f"_AMPLINT_COMPLETE={shell}_complete" in source
    assert f"_AMPLINT_COMPLETE={shell}_source amplint" in PAGE


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_source_is_valid(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    source = complete(_AMPLINT_COMPLETE=f"{shell}_source")
    assert subprocess.run([shell, "-n"], input=source, text=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("amplint ", {"check", "dtypes", "explain", "report", "verify"}),
        ("amplint check --sc", {"--scenario"}),
        ("amplint check --device c", {"cuda", "cpu"}),
        ("amplint report --time", {"--timeout"}),
    ],
)
def test_answers(words: str, wanted: set[str]) -> None:
    position = str(len(words.split(" ")) - 1)
    bash = complete(_AMPLINT_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=position)
    assert wanted <= {line.partition(",")[2] for line in bash.splitlines()}
    zsh = complete(_AMPLINT_COMPLETE="zsh_complete", COMP_WORDS=words, COMP_CWORD=position)
    assert wanted <= set(zsh.splitlines())
