"""The table of doubts, and the one function that chooses a certainty."""

from __future__ import annotations

import ast
import json
import re
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from amplint_rules import all_rules

from amplint.engine import Options, check_file
from amplint.finding import Certainty, Doubt, Effect, Finding, HeldDoubt, Severity
from amplint.judge import doubts
from amplint.judge.certainty import ASSUMED, FORCED, SUREST_FIRST, certainty
from amplint.judge.doubts import TABLE
from amplint.report import Context, plain, render
from amplint.source import Location, Source, Span

if TYPE_CHECKING:
    from amplint.rule_base import Rule

ROOT = Path(__file__).resolve().parent.parent
JUDGE = ROOT / "amplint" / "judge"
LIKELY = Doubt("toy-likely", (), Effect.LIKELY, "It may be a toy.")
POSSIBLE = Doubt("toy-possible", (), Effect.POSSIBLE, "It is a toy.")
DROP = Doubt("toy-drop", (), Effect.DROP, "It is nothing.")
RULES = tuple(all_rules())


def sources() -> list[Path]:
    return [path for folder in ("amplint", "rules") for path in (ROOT / folder).rglob("*.py") if path.parent != JUDGE]


def test_rows_are_named_and_said_alike() -> None:
    assert len({row.name for row in TABLE}) == len(TABLE)
    assert len({row.message for row in TABLE}) == len(TABLE)
    codes = {rule.code for rule in RULES}
    for row in TABLE:
        assert re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", row.name), row.name
        assert re.fullmatch(r"[A-Z].{10,118}\.", row.message), row.message
        assert set(row.codes) <= codes, row.name


def test_every_row_is_asked_for_somewhere() -> None:
    words = {word for path in sources() for word in re.findall(r"[A-Z][A-Z0-9_]+", path.read_text(encoding="utf-8"))}
    assert {name for name, row in vars(doubts).items() if isinstance(row, Doubt)} <= words


SETTING = ROOT / "amplint/threshold.py"
"""How sure users may ask a finding to be."""


def test_one_function_chooses_a_certainty() -> None:
    named = []
    for path in sources():
        if path == SETTING:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        compared = {id(n) for test in ast.walk(tree) if isinstance(test, ast.Compare) for n in ast.walk(test)}
        named += [
            f"{path.relative_to(ROOT)}:{node.lineno}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "Certainty"
            and id(node) not in compared
        ]
    assert named == []


def test_the_judge_rests_on_plain_data_alone() -> None:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in JUDGE.glob("*.py")]
    imported = {node.module for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    allowed = {"amplint.finding", "amplint.frozen", "amplint.source", "amplint.judge.preview"}
    assert {name for name in imported if name and name.startswith("amplint")} <= allowed


@pytest.mark.parametrize("forced", [True, False])
def test_a_further_doubt_never_makes_surer(forced: bool) -> None:
    assert certainty(forced, ()) is (Certainty.PROVEN if forced else Certainty.LIKELY)
    for held in product(Effect, repeat=2):
        one, both = certainty(forced, held[:1]), certainty(forced, held)
        assert SUREST_FIRST.index(both) >= SUREST_FIRST.index(one)
        assert both is certainty(forced, held[::-1])
    assert certainty(True, [Effect.LIKELY]) is Certainty.LIKELY
    assert certainty(forced, [Effect.LIKELY, Effect.POSSIBLE]) is Certainty.POSSIBLE
    assert certainty(forced, Effect) is None


def test_only_what_lowered_the_certainty_is_kept_for_the_reader() -> None:
    span = Span(Location(2, 1), Location(2, 5))
    assert FORCED.doubted(LIKELY, span=span).lowering == (HeldDoubt(LIKELY, span),)
    assert ASSUMED.doubted(LIKELY).lowering == ()
    assert ASSUMED.doubted(LIKELY, POSSIBLE).doubted(POSSIBLE).lowering == (HeldDoubt(POSSIBLE),)
    assert (ASSUMED.told, ASSUMED.doubted(POSSIBLE).told, FORCED.doubted(DROP).told) == (True, False, False)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_doubts_hold_about_the_rules_that_they_name(rule: Rule, tmp_path: Path) -> None:
    for example in (*rule.bad, *rule.good):
        options = Options(RULES, device=example.device, pedantic=True)
        for finding in check_file(Source(tmp_path / "case.py", example.source.encode()), options).findings:
            for held in finding.doubts:
                assert not held.doubt.codes or finding.code in held.doubt.codes, (finding.code, held.doubt.name)


ASKED = b"""\
import torch


def cast(x: torch.Tensor, low: bool):
    return x.half() * 2 if low else x
"""


def test_what_a_doubt_drops_is_shown_to_who_asks_for_it(tmp_path: Path) -> None:
    source = Source(tmp_path / "case.py", ASKED)
    assert check_file(source, Options(RULES, pedantic=True)).findings == ()
    (finding,) = check_file(source, Options(RULES, dropped=True)).findings
    assert (finding.code, finding.certainty) == ("AMP109", Certainty.POSSIBLE)
    assert [held.doubt.name for held in finding.doubts] == ["asked-for"]


def test_reports_name_the_doubts(tmp_path: Path) -> None:
    source = Source(tmp_path / "case.py", b"f(x)\ng(x)\n")
    first, second = (Span(Location(row, 1), Location(row, 5)) for row in (1, 2))
    finding = Finding(
        "TOY101",
        "toy",
        "f is called",
        Severity.WARNING,
        Certainty.POSSIBLE,
        source.path,
        first,
        ("fp16",),
        "cuda",
        doubts=(HeldDoubt(POSSIBLE), HeldDoubt(LIKELY, second)),
    )
    shown = {source.path: source}
    pedantic = plain(render("full", [finding], Context({}, shown, pedantic=True)))
    assert "  = certainty: possible\n  = doubt: It is a toy. (toy-possible)\n" in pedantic
    assert "  = doubt: line 2: It may be a toy. (toy-likely)\n" in pedantic
    assert "= doubt" not in plain(render("full", [finding], Context({}, shown)))
    document = plain(render("json", [finding], Context({})))
    wanted = [
        {"name": "toy-possible", "message": "It is a toy.", "location": None},
        {"name": "toy-likely", "message": "It may be a toy.", "location": {"row": 2, "column": 1}},
    ]
    assert json.loads(document)[0]["doubts"] == wanted
