"""docs/: the committed pages are what the rules say, and the terminal prints the same."""

from __future__ import annotations

import importlib.util
import re
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from conftest import ROOT, amplint
from toy_rules import all_rules as toy_rules

from amplint.explain.rule_page import rule_page
from amplint.plugins import load_rules

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = ROOT / "docs" / "rules"
RULES = load_rules()

_spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "docs" / "generate.py")
assert _spec is not None
assert _spec.loader is not None
generate = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(generate)


@pytest.fixture(autouse=True)
def no_kind_is_in_preview() -> None:
    """The pages name the kinds that are in preview."""


def committed() -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}


def prose(page: str) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "```", page, flags=re.DOTALL | re.MULTILINE)


def test_the_pages_are_those_of_the_rules() -> None:
    wanted, found = generate.pages(RULES), committed()
    differing = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    assert not differing, "run python docs/generate.py"


def test_the_index_is_that_of_the_rules() -> None:
    assert generate.RULE_INDEX.read_text() == generate.index_of(RULES), "run python docs/generate.py --rules"


def test_the_generator_writes_what_differs_and_removes_what_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate, "FOLDER", tmp_path / "rules")
    monkeypatch.setattr(generate, "RULE_INDEX", tmp_path / "index.py")
    generate.write_rules()
    assert (tmp_path / "index.py").read_text() == generate.index_of(RULES)
    (tmp_path / "rules" / "AMP105.md").write_text("edited by hand")
    (tmp_path / "rules" / "AMP777.md").write_text("a rule that is no more")
    capsys.readouterr()
    generate.write_rules()
    assert capsys.readouterr().out.splitlines() == ["removed AMP777.md", "wrote AMP105.md"]
    assert {path.name: path.read_text() for path in (tmp_path / "rules").iterdir()} == generate.pages(RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_explain_prints_the_page(rule) -> None:
    done = amplint("explain", rule.code)
    assert done.status == 0
    body = done.stdout.removesuffix(f"\n{rule.url}\n")
    assert committed()[f"{rule.code}.md"] == generate.NOTE + body + generate.BACK


def test_every_rule_is_in_the_table_and_where_its_url_says() -> None:
    linked = re.findall(r"^\| \[(\w+)\]\((\S+)\) \|", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert linked == [(rule.code, f"{rule.code}.md") for rule in RULES]
    assert all(rule.url.endswith(f"/rules/{rule.code}/") for rule in RULES)


def test_links_lead_to_files() -> None:
    for path in (ROOT / "docs").rglob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", prose(path.read_text(encoding="utf-8"))):
            assert (path.parent / target).is_file(), f"{path}: {target}"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_page_is_markdown_for_any_reader(rule) -> None:
    """Fences close, a list starts after an empty line, and nothing is a block by its indentation alone."""
    text = prose(rule_page(rule))
    assert len(re.findall(r"^```", text, re.MULTILINE)) == len(re.findall(r"^```$", text, re.MULTILINE))
    for above, line in pairwise(text.splitlines()):
        if re.match(r"[-*] |\d+\. ", line):
            assert not above or re.match(r"[-*] |\d+\. |  ", above), line
        assert not line.startswith("    "), line


def test_what_a_rule_says_of_itself_is_on_its_page() -> None:
    rules = {rule.code: rule for rule in toy_rules()}
    pages = {code: rule_page(rule) for code, rule in rules.items()}
    assert pages["TOY101"].startswith(
        "TOY101 toy-half\n===============\n\nFlags half().\n\n- Severity: error\n- Fix: a safe"
    )
    assert "Under `fp16`, by the cast policy of cuda:\n\n```python\nx.half()  # expect\n```\n" in pages["TOY101"]
    for code, page in pages.items():
        assert (f"- Off by default: turn it on with `--extend-select {code}`" in page) is not rules[code].default
        assert ("- Evidence: cited" in page) is (rules[code].evidence.value == "cited")
        assert ("- Fix: none\n" in page) is (rules[code].fix is None)
    assert "- Fails by the cast policy of: cpu, mps\n" in rule_page(next(r for r in RULES if r.code == "AMP108"))
