"""``amplint server``: what it offers to do about findings."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from conftest import ROOT, amplint
from language_client import Editor, driven
from lsprotocol import types

if TYPE_CHECKING:
    from pathlib import Path

QUANTIZER = ROOT / "fixtures" / "incidents" / "lookup_free_quantizer" / "failing.py"
LEGACY = "import torch\n\nwith torch.cuda.amp.autocast():\n    pass\nwith torch.cuda.amp.autocast():\n    pass\n"
WHOLE = types.Range(types.Position(0, 0), types.Position(1000, 0))
QUICK_FIX = types.CodeActionKind.QuickFix


def file_with(folder: Path, text: str) -> Path:
    path = folder / "model.py"
    path.write_text(text, encoding="utf-8")
    return path


@driven
async def test_a_safe_fix_is_preferred(editor: Editor, project: Path) -> None:
    uri = editor.open(file_with(project, LEGACY))
    first, second = await editor.diagnostics(uri)
    fix, *rest = await editor.actions(uri, first.range, QUICK_FIX.value)
    assert (fix.kind, fix.is_preferred, fix.diagnostics) == (QUICK_FIX, True, (first,))
    assert fix.title == 'amplint AMP601: Use torch.amp.autocast("cuda", ...)'
    modern = 'torch.amp.autocast("cuda", dtype=torch.float16)'
    assert editor.applied(uri, fix) == LEGACY.replace("torch.cuda.amp.autocast()", modern, 1)
    assert [action.title for action in rest] == ["amplint AMP601: ignore on this line"]
    assert all(action.diagnostics == (second,) for action in await editor.actions(uri, second.range, "quickfix"))
    assert await editor.actions(uri, types.Range(types.Position(1, 0), types.Position(1, 0)), "quickfix") == []


@driven
async def test_an_unsafe_fix_says_so_and_is_never_among_all_fixes(editor: Editor, project: Path) -> None:
    path = project / "model.py"
    shutil.copy(QUANTIZER, path)
    uri = editor.open(path)
    (shown,) = await editor.diagnostics(uri)
    fix, ignore = await editor.actions(uri, shown.range)
    assert fix.title == (
        "amplint AMP106: Cast the input to the dtype of the layer's parameters (unsafe: may change results)"
    )
    assert not fix.is_preferred
    path.write_text(editor.applied(uri, fix))
    assert amplint("check", str(path)).status == 0
    assert not ignore.is_preferred
    assert await editor.actions(uri, WHOLE, "source.fixAll") == []


@driven
async def test_all_safe_fixes_make_of_the_text_what_check_does(project: Path) -> None:
    text = LEGACY + "\n\ndef f(x):\n    return x\n" + LEGACY.removeprefix("import torch\n").rstrip("\n")
    path = file_with(project, text)
    async with Editor(project, versioned=True) as editor:
        uri = editor.open(path, "# 😋\n" + text)
        assert len(await editor.diagnostics(uri)) == 4
        (action,) = await editor.actions(uri, WHOLE, "source.fixAll.amplint")
        assert action.kind == "source.fixAll.amplint"
        assert amplint("check", "--fix", str(path)).status == 0
        assert editor.applied(uri, action) == "# 😋\n" + path.read_text()
        (again,) = await editor.actions(uri, WHOLE, "source")
        assert again == action
        assert await editor.actions(uri, WHOLE, "refactor", "source.organizeImports") == []
        editor.change(uri, editor.applied(uri, action))
        assert await editor.actions(uri, WHOLE, "source.fixAll") == [], "what was just typed counts"


@driven
async def test_windows_line_endings_are_kept(editor: Editor, project: Path) -> None:
    text = "from torch.cuda.amp import autocast\r\n\r\nwith autocast():\r\n    pass\r\n"
    uri = editor.open(file_with(project, ""), text)
    shown = (await editor.diagnostics(uri))[-1]
    for action in await editor.actions(uri, shown.range):
        fixed = editor.applied(uri, action)
        assert fixed != text
        assert fixed.count("\r\n") == fixed.count("\n")


@driven
async def test_what_is_asked_by_itself_waits_for_nothing(editor: Editor, project: Path) -> None:
    uri = editor.open(file_with(project, LEGACY))
    first, _ = await editor.diagnostics(uri)
    assert len(await editor.actions(uri, first.range, automatic=True)) == 3
    assert len(await editor.actions(uri, WHOLE, "source.fixAll", automatic=True)) == 1


@driven
async def test_a_comment_silences_one_finding(editor: Editor, project: Path) -> None:
    call = "torch.cuda.amp.autocast()"
    for before, after in (
        (f"x = {call}\n", f"x = {call}  # amplint: ignore[AMP601]\n"),
        (f"x = {call}  # why  \n", f"x = {call}  # why  # amplint: ignore[AMP601]\n"),
        (f"x = {call}  # amplint: ignore[AMP113] y\n", f"x = {call}  # amplint: ignore[AMP113, AMP601] y\n"),
        (f"x = {call}", f"x = {call}  # amplint: ignore[AMP601]"),
        (f"x = f({call},\n  '''\n''')\n", f"x = f({call},  # amplint: ignore[AMP601]\n  '''\n''')\n"),
        (f"x = {call}, '''\n'''\n", f"x = {call}, '''\n'''  # amplint: ignore[AMP601]\n"),
        (f"x = {call}, \\\n  1\n", f"x = {call}, \\\n  1  # amplint: ignore[AMP601]\n"),
    ):
        uri = editor.open(file_with(project, ""), f"import torch\n\n{before}")
        (shown,) = await editor.diagnostics(uri)
        found = [action for action in await editor.actions(uri, shown.range) if "ignore" in action.title]
        (action,) = found
        assert editor.applied(uri, action) == f"import torch\n\n{after}"
        editor.change(uri, editor.applied(uri, action))
        assert await editor.codes(uri) == []
