"""``amplint server``: what it shows of rules and dtypes beside and over the text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from conftest import ROOT, amplint
from language_client import Editor, driven
from pygls.exceptions import JsonRpcException

from amplint.infer.lattice.scenarios import SCENARIOS
from amplint.plugins import load_rules

if TYPE_CHECKING:
    from pathlib import Path

QUANTIZER = ROOT / "fixtures" / "incidents" / "lookup_free_quantizer" / "failing.py"
BLOCK = """import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.count = 3

    def forward(self, x: torch.Tensor):
        '😋'; y = self.layer(x)
        size, unknown = y.shape[0], something(y)
        self.kept: torch.Tensor = y.float()
        z = self.kept + y.sum()
        for part in y: z += part
        if (last := z[0]) is not None:
            return last, size, unknown
"""


def file_with(folder: Path, text: str, name: str = "model.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def cells(table: str) -> dict[str, tuple[str, str]]:
    """A table by scenario."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {name: (row[1], row[2]) for row in rows for name in row[0].split(", ")}


# ---- hovering -------------------------------------------------------------------------------------------------------


@driven
async def test_an_expression_shows_its_dtype_in_each_scenario_and_its_origin(editor: Editor, project: Path) -> None:
    path = file_with(project, BLOCK)
    uri = editor.open(path)
    await editor.diagnostics(uri)
    found = await editor.hover(uri, "self.layer(x)", len("self.layer("))
    assert found is not None
    assert found[1] == "x"
    shown = cells(found[0])
    assert list(shown) != []
    assert shown.keys() == {scenario.name for scenario in SCENARIOS}
    for scenario in SCENARIOS:
        document = json.loads(
            amplint("dtypes", str(path), "--scenario", scenario.name, "--output-format", "json").stdout
        )
        row = next(
            row
            for row in document["files"][0]["expressions"]
            if row["location"] == {"row": 12, "column": 29} and row["end_location"]["column"] == 30
        )
        dtype, decided = shown[scenario.name]
        assert dtype == f"`{row['dtype']}`"
        line = row["origin"]["row"]
        assert decided.startswith(f"[line {line}]({uri}#L{line}): ")


@driven
async def test_hovering_takes_the_innermost_and_variables_where_they_are_assigned(
    editor: Editor, project: Path
) -> None:
    uri = editor.open(file_with(project, BLOCK))
    for text, skip, about in (
        ("y = self", 0, "y"),
        ("self.layer(x)", 11, "x"),
        ("self.layer(x)", 10, "self.layer(x)"),
        ("self.kept + y.sum()", 0, "self.kept"),
        ("self.kept + y.sum()", 10, "self.kept + y.sum()"),
        ("self.kept:", 5, "self.kept"),
    ):
        found = await editor.hover(uri, text, skip)
        assert found is not None, text
        assert found[1] == about
    for text in ("self.count", "class Block", "unknown = y", "size"):
        assert await editor.hover(uri, text, 1) is None, text
    found = await editor.hover(uri, "self.kept + y.sum()", 10)
    assert found is not None
    shown = cells(found[0])
    assert {dtype for dtype, _ in shown.values()} == {"`float32`"}


@driven
async def test_a_finding_shows_what_its_rule_says(editor: Editor, project: Path) -> None:
    uri = editor.open(file_with(project, QUANTIZER.read_text()))
    await editor.diagnostics(uri)
    found = await editor.hover(uri, "self.project_in(x)", len("self.project_in("))
    assert found is not None
    table, _, rule = found[0].partition("\n\n---\n\n")
    assert cells(table)["autocast-fp16"][0] == "`float16` or `float32`"
    assert "by autocast" in table
    (known,) = (rule for rule in load_rules() if rule.code == "AMP106")
    assert rule.startswith(f"**AMP106 uncast-autocast-exit**: {known.summary}.\n\nWhat it does\n---")
    assert rule.endswith(f"[AMP106 on the web]({known.url})")
    found = await editor.hover(uri, "return self.decoder(quantized)", len("return self.deco"))
    assert found is None or "AMP" not in found[0]


# ---- hints ----------------------------------------------------------------------------------------------------------


@driven
async def test_assignments_show_the_dtype_where_it_is_known(editor: Editor, project: Path) -> None:
    uri = editor.open(file_with(project, BLOCK))
    assert await editor.command("bf16-true") == "bf16"
    assert editor.refreshed == 1
    shown = await editor.hints(uri)
    assert shown == {
        "'😋'; y": ": bfloat16",
        "self.kept": ": float32",
        "z": ": float32",
        "for part": ": bfloat16",
        "for part in y: z": ": float32",
        "if (last": ": float32",
    }
    assert await editor.command("fp16") == "fp16"
    assert (await editor.hints(uri))["'😋'; y"] == ": float16"
    assert list(await editor.hints(uri, (13, 14))) == ["self.kept"]
    editor.change(uri, "import torch\n\n\ndef f():\n    y = torch.zeros(3)\n")
    assert await editor.hints(uri) == {"y": ": float32"}


@driven
async def test_the_scenario_is_what_settings_say_then_the_configuration(project: Path) -> None:
    path = file_with(project, BLOCK)
    for settings, configuration, wanted in (
        (None, "", ": bfloat16"),
        (None, 'scenarios = ["fp16"]\n', ": float16"),
        ({"scenario": "fp32"}, 'scenarios = ["fp16"]\n', ": float32"),
    ):
        file_with(project, configuration, "amplint.toml")
        async with Editor(project, settings=settings) as editor:
            uri = editor.open(path)
            assert (await editor.hints(uri))["'😋'; y"] == wanted
    async with Editor(project, settings={"amplint": {"scenario": "fp61"}}, answer="fp16") as editor:
        assert await editor.command() == "fp16", "without a name, the user is asked for one"
        assert [item.title for item in editor.asked[0].actions or ()] == [scenario.name for scenario in SCENARIOS]
        assert editor.shown == ["amplint: unknown scenario 'fp61' (did you mean 'fp16'?)"]


@driven
async def test_settings_may_change(editor: Editor, project: Path) -> None:
    uri = editor.open(file_with(project, BLOCK))
    for settings, wanted, said in (
        ({"amplint": {"scenario": "fp16"}}, ": float16", None),
        ({"scenario": "bf16"}, ": bfloat16", None),
        ({"python": {"scenario": "fp16"}}, ": bfloat16", None),
        ({"amplint": {"scenario": None}}, ": bfloat16", None),
        (None, ": bfloat16", None),
        ({"amplint": {"scenarios": "fp16"}}, ": bfloat16", "unknown setting 'scenarios' (did you mean 'scenario'?)"),
        ({"amplint": {"scenario": 16}}, ": bfloat16", "unknown scenario '16'; known: fp32, "),
        ({"amplint": ["fp16"]}, ": bfloat16", "the setting 'amplint' must be a table with the key 'scenario'"),
    ):
        editor.configure(settings)
        assert (await editor.hints(uri))["'😋'; y"] == wanted
        if said is None:
            assert editor.shown == []
        else:
            assert re.match(re.escape(f"amplint: {said}"), editor.shown.pop())
    assert editor.refreshed == 2


@driven
async def test_a_scenario_that_is_mistyped_is_an_error(editor: Editor) -> None:
    with pytest.raises(JsonRpcException, match=re.escape("unknown scenario 'fp61' (did you mean 'fp16'?)")):
        await editor.command("fp61")
    assert await editor.command() is None, "the user closed the question"
