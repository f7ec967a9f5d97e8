"""README.md and docs/: what they show is what the program does, their commands run, and the site builds."""

from __future__ import annotations

import html
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from conftest import ROOT, amplint

from amplint.cli.main import main

sys.path.append(str(ROOT / "docs"))
from shown import outputs, tables

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXTS = {path: path.read_text(encoding="utf-8") for path in PAGES}
PAGE_OF_JSON = TEXTS[ROOT / "docs" / "output.md"]
STALE = "run python docs/generate.py"
ENDLESS = {"amplint check --watch", "amplint server"}
"""Commands that do not end by themselves."""
ELSEWHERE = {"amplint preflight . --python ../env/bin/python"}
"""Commands about an environment that is not here."""

MODEL = """\
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        table = torch.zeros(4, x.shape[-1])
        table.index_add_(0, torch.tensor([0, 1]), self.proj(x))
        return table


def amplint_example():
    return Attention(8), (torch.randn(2, 8),), {}
"""
LOG = """\
Traceback (most recent call last):
  File "model.py", line 12, in forward
    table.index_add_(0, torch.tensor([0, 1]), self.proj(x))
RuntimeError: index_add_(): self (Float) and source (BFloat16) must have the same scalar type
"""
NOTEBOOK = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}\n'


@pytest.fixture(autouse=True)
def no_kind_is_in_preview() -> None:
    """What is shown is what a user sees, with the kinds that are in preview left out."""


def ids(path: Path) -> str:
    return path.name if path.parent != ROOT else f"../{path.name}"


def commands() -> list[tuple[str, str]]:
    """All lines of shell that call amplint on pages without files of their own, and from its name on; but those that
    ``test_ci_recipes`` tries, in an order."""
    found = []
    for text in TEXTS.values():
        if "<!-- tried: " in text or any(block["role"] == "file" for block in outputs.blocks(text)):
            continue
        for block in outputs.blocks(text):
            if block["language"] == "sh":
                for line in outputs.commands(block["text"]):
                    called = re.search(r"(?:^|[|&] |--no-run-if-empty )(amplint .*)", line)
                    found += [(line, called[1])] if called is not None and "COMPLETE" not in line else []
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("path", PAGES, ids=ids)
def test_the_outputs_are_what_the_commands_print(path: Path) -> None:
    assert outputs.with_outputs(TEXTS[path]) == TEXTS[path], STALE


@pytest.mark.parametrize("path", PAGES, ids=ids)
def test_the_tables_are_current(path: Path) -> None:
    assert tables.with_tables(TEXTS[path]) == TEXTS[path], STALE


def test_the_json_is_a_shortened_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    shown = re.search(r"<!-- shortened output of: amplint (.*?), .*? -->\n```json\n(.*?)```", PAGE_OF_JSON, re.DOTALL)
    assert shown is not None
    (finding, *_) = json.loads(amplint(*shown[1].split()).stdout)
    for place in (finding, *finding["causes"]):
        place["filename"] = "/abs/" + Path(place["filename"]).name
    del finding["causes"][1:]
    assert json.loads(shown[2]) == [finding]


def test_a_stale_page_is_seen() -> None:
    page = (
        "<!-- output of: amplint --version -->\n```text\nold\n```\n<!-- begin: scenarios -->\n<!-- end: scenarios -->\n"
    )
    assert outputs.with_outputs(page) == page.replace("old", amplint("--version").stdout.strip())
    assert "| `fsdp-bf16` | bfloat16 |" in tables.with_tables(page)
    with pytest.raises(outputs.FailedError, match="no such file"):
        outputs.with_outputs("<!-- output of: amplint check gone.py -->\n```text\n```\n")


def test_the_picture_is_the_run() -> None:
    pytest.importorskip("pty")
    from shown import picture

    drawn = re.findall(r"<text [^>]*>(.*?)</text>", picture.PICTURE.read_text(encoding="utf-8"))
    told = re.sub(r"\x1b\[[\d;]*m", "", picture.on_a_terminal())
    (start,) = (n for n, text in enumerate(drawn) if text.startswith("error"))
    assert "".join(html.unescape("".join(drawn[start:])).split()) == "".join(told.split()), STALE


@pytest.mark.parametrize("called", [called for _, called in commands()])
def test_the_options_of_every_command_exist(called: str) -> None:
    words = shlex.split(called)[1:]
    if words[0].startswith("-"):
        return
    command = main.get_command(click.Context(main), words[0])
    assert command is not None
    command.make_context(words[0], [word for word in words[1:] if word != "FILE"], resilient_parsing=True)


@pytest.fixture(scope="module")
def scaffold(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with what the commands of the pages name."""
    folder = tmp_path_factory.mktemp("repository")
    for name in ("src/model.py", "model.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(MODEL)
    (folder / "train.py").write_text("import torch\n")
    (folder / "train.log").write_text(LOG)
    (folder / "a.ipynb").write_text(NOTEBOOK)
    (folder / "ds.json").write_text('{"bf16": {"enabled": true}}\n')
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "all")
    return folder


def git(folder: Path, *arguments: str) -> None:
    who = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(["git", *arguments], cwd=folder, env={**os.environ, **who}, check=True)


def runnable() -> list[str]:
    return sorted(
        line
        for line, called in commands()
        if line == called and line not in ENDLESS | ELSEWHERE and "amplint check --exit-zero fixtures" not in line
    )


@pytest.mark.parametrize("line", runnable())
def test_every_command_runs(line: str, scaffold: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(scaffold, tmp_path / "it")
    monkeypatch.chdir(tmp_path / "it")
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "packs" / "house"))
    done = amplint(*shlex.split(line.replace("my_pack", "house_rules").replace("model.py:41", "model.py:12"))[1:])
    assert done.status in (0, 1), done.stderr


def test_every_command_is_told_somewhere() -> None:
    told = "".join(TEXTS.values())
    assert [name for name in main.list_commands(click.Context(main)) if f"amplint {name}" not in told] == []


def test_links_of_the_readme_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", TEXTS[ROOT / "README.md"])
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_site_builds_without_a_warning_and_its_links_hold(tmp_path: Path) -> None:
    if any(importlib.util.find_spec(name) is None for name in ("mkdocs", "material")):
        pytest.skip('the site needs pip install -e ".[docs]"')
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(build, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    for page in (tmp_path / "site").rglob("index.html"):
        for link in re.findall(r'(?:href|src)="((?!\w+:)[^"#?]+)', page.read_text(encoding="utf-8")):
            target = page.parent / link
            assert target.is_file() or (target / "index.html").is_file(), f"{page}: {link}"
    rules = {path.parent.name for path in (tmp_path / "site" / "rules").glob("*/index.html")}
    assert "AMP105" in rules
