"""No circle of imports, those for types and inside functions included."""

from __future__ import annotations

import re
import sys

import pytest
from conftest import ROOT

BENCHMARKS = ROOT / "benchmarks"
if str(BENCHMARKS) not in sys.path:
    sys.path.append(str(BENCHMARKS))

from imports import circles, graph, rule_imports  # noqa: E402

AMPLINT = graph("amplint")


def test_there_are_no_circles() -> None:
    assert circles(AMPLINT) == []


DATA = ("amplint.finding", "amplint.frozen", "amplint.source")
ROOMS = {
    "amplint.judge": DATA,
    "amplint.notebook": DATA,
    "amplint.claims": ("amplint.infer", "amplint.judge", *DATA),
    "amplint.rewriting": ("amplint.claims", "amplint.infer", "amplint.visit", "amplint.orphans", *DATA),
}
"""What each room imports beside its own files, for types and inside functions included."""
INFER = ("syntax", "lattice", "flow", "names", "state", "torch_model", "machine", "entry")
"""The rooms of the inference, from bottom to top: each imports from those before it."""
RULES_MAY = ("amplint.rule", "amplint.claims", "amplint.rewriting")
LONGEST_RULE = 250
ABOVE_INFER = (
    "amplint.judge",
    "amplint.claims",
    "amplint.rewriting",
    "amplint.rule",
    "amplint.rule_base",
    "amplint.visit",
)


def inside(module: str, rooms: tuple[str, ...]) -> bool:
    return any(module == room or module.startswith(f"{room}.") for room in rooms)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_from_the_rooms_below_it(room: str) -> None:
    files = {module: imported for module, imported in AMPLINT.items() if inside(module, (room,))}
    assert len(files) > 1
    may = (room, *ROOMS[room])
    assert [f"{module} -> {other}" for module in files for other in files[module] if not inside(other, may)] == []


def test_rules_import_one_module_beside_claims_and_rewriting() -> None:
    assert [module for module in rule_imports() if not inside(module, RULES_MAY)] == []


def test_the_server_knows_nothing_of_the_command_line() -> None:
    files = {module: imported for module, imported in AMPLINT.items() if inside(module, ("amplint.server",))}
    assert len(files) > 1
    assert [
        f"{module} -> {other}" for module in files for other in files[module] if inside(other, ("amplint.cli",))
    ] == []


def test_the_inference_knows_nothing_of_claims() -> None:
    found = {module: imported for module, imported in AMPLINT.items() if inside(module, ("amplint.infer",))}
    assert [f"{module} -> {other}" for module in found for other in found[module] if inside(other, ABOVE_INFER)] == []


@pytest.mark.parametrize("room", INFER)
def test_a_room_of_the_inference_imports_from_those_below_it(room: str) -> None:
    files = {module: imported for module, imported in AMPLINT.items() if inside(module, (f"amplint.infer.{room}",))}
    assert len(files) > 1
    above = tuple(f"amplint.infer.{other}" for other in INFER[INFER.index(room) + 1 :])
    assert [f"{module} -> {other}" for module in files for other in files[module] if inside(other, above)] == []


def test_every_file_of_the_inference_lies_in_a_room() -> None:
    rooms = tuple(f"amplint.infer.{room}" for room in INFER)
    found = [module for module in AMPLINT if inside(module, ("amplint.infer",)) and not inside(module, rooms)]
    assert found == ["amplint.infer"]


def test_rooms_of_the_inference_pass_nothing_on() -> None:
    rooms = ("amplint.infer", *(f"amplint.infer.{room}" for room in INFER))
    assert {room: AMPLINT[room] for room in rooms} == {room: {} for room in rooms}


def test_claims_rest_on_facts_and_not_on_the_lossless_source() -> None:
    imports = re.compile(r"(import|from) libcst")
    assert [path.name for path in (ROOT / "amplint" / "claims").glob("*.py") if imports.search(path.read_text())] == []


def test_a_folder_of_rules_holds_rules_only() -> None:
    paths = [path for path in (ROOT / "rules").rglob("*") if "__pycache__" not in path.parts]
    assert [path.name for path in paths if not re.fullmatch(r"amp\d{3}_\w+\.py|(__init__|index)\.py", path.name)] == []
    assert graph("rules") == {module: {} for module in graph("rules")}


def test_a_rule_is_short_enough_to_be_copied() -> None:
    lines = {path.name: len(path.read_text().splitlines()) for path in (ROOT / "rules").glob("amp*.py")}
    assert {name: count for name, count in lines.items() if count > LONGEST_RULE} == {}


def test_every_kind_of_import_closes_a_circle() -> None:
    imports = {"a": {"b": "now"}, "b": {"c": "late", "d": "now"}, "c": {"a": "types"}, "d": {}, "e": {"a": "now"}}
    assert circles(imports) == [{"a", "b", "c"}]
    assert {kind for of_module in AMPLINT.values() for kind in of_module.values()} == {"now", "late", "types"}
    assert AMPLINT["amplint.fix.rounds"]["amplint.finding"] == "types"


def test_what_rules_import_is_counted_by_files() -> None:
    found = rule_imports()
    assert found["amplint.rule"]["Rule"] >= 35
    assert all(module.startswith("amplint.") for module in found)
