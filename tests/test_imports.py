"""No circle of imports, those for types and inside functions included."""

from __future__ import annotations

import sys

from conftest import ROOT

BENCHMARKS = ROOT / "benchmarks"
if str(BENCHMARKS) not in sys.path:
    sys.path.append(str(BENCHMARKS))

from imports import circles, graph, rule_imports  # noqa: E402

AMPLINT = graph("amplint")


def test_there_are_no_circles() -> None:
    assert circles(AMPLINT) == []


def test_there_are_no_circles_of_rules() -> None:
    assert circles(graph("rules")) == []


def test_every_kind_of_import_closes_a_circle() -> None:
    imports = {"a": {"b": "now"}, "b": {"c": "late", "d": "now"}, "c": {"a": "types"}, "d": {}, "e": {"a": "now"}}
    assert circles(imports) == [{"a", "b", "c"}]
    assert {kind for of_module in AMPLINT.values() for kind in of_module.values()} == {"now", "late", "types"}
    assert AMPLINT["amplint.fix.rounds"]["amplint.finding"] == "types"


def test_what_rules_import_is_counted_by_files() -> None:
    found = rule_imports()
    assert found["amplint.rule"]["Rule"] >= 35
    assert all(module.startswith("amplint.") for module in found)
