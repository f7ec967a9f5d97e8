"""``amplint server``: what it says of open documents, and what it survives."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from conftest import ROOT, amplint
from language_client import Editor, driven
from lsprotocol import types
from server_rules import RELEASED, STARTED

from amplint.server.documents import PAUSE

if TYPE_CHECKING:
    from pathlib import Path

QUANTIZER = ROOT / "fixtures" / "incidents" / "lookup_free_quantizer" / "failing.py"
LEGACY = "import torch\n\nwith torch.cuda.amp.autocast():\n    pass\n"
CLEAN = "import torch\n\nx = torch.zeros(3)\n"
USES_TABLE = (
    "import torch\nfrom torch import nn\nfrom tables import table\n\n\nclass Block(nn.Module):\n"
    "    def __init__(self):\n        super().__init__()\n        self.layer = nn.Linear(3, 3)\n\n"
    "    def forward(self, x):\n        y = self.layer(x)\n        return y @ table, y.mv(table)\n"
)
KEPT_BACK = 'extend-select = ["AMP103"]\n'
"""Tells what is in preview, too."""
WHOLE = types.Range(types.Position(0, 0), types.Position(1000, 0))
BAD_PACK = 'plugins = ["server_rules"]\n'


def file_with(folder: Path, text: str, name: str = "model.py") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


async def busy(editor: Editor, folder: Path, name: str) -> str:
    """Open a document whose check has begun and goes on until the folder has a file RELEASED."""
    uri = editor.open(file_with(folder, LEGACY + "be_busy = 1\n", name))
    while not (folder / STARTED).exists():
        await asyncio.sleep(0.02)
    return uri


# ---- diagnostics ----------------------------------------------------------------------------------------------------


@driven
async def test_a_finding_is_shown_as_check_tells_it(project: Path) -> None:
    path = file_with(project, QUANTIZER.read_text())
    (told,) = json.loads(amplint("check", str(path), "--output-format", "json").stdout)
    async with Editor(project, encodings=["utf-32"]) as editor:
        (shown,) = await editor.diagnostics(editor.open(path))

    def range_of(place: dict[str, dict[str, int]]) -> types.Range:
        start, end = place["location"], place["end_location"]
        return types.Range(
            types.Position(start["row"] - 1, start["column"] - 1), types.Position(end["row"] - 1, end["column"] - 1)
        )

    assert (shown.source, shown.code, shown.severity) == ("amplint", told["code"], types.DiagnosticSeverity.Error)
    assert shown.range == range_of(told)
    assert shown.code_description == types.CodeDescription(told["url"])
    assert shown.data == {"fingerprint": told["fingerprint"]}
    assert shown.message == f"{told['message']}\nscenarios: autocast-fp16, autocast-bf16 (device cuda)"
    related = [(one.location.uri, one.location.range, one.message) for one in shown.related_information or ()]
    assert related == [(path.as_uri(), range_of(cause), cause["message"]) for cause in told["causes"]]
    assert len(related) == 3


@driven
async def test_places_in_other_files_and_of_the_same_cause_are_related(editor: Editor, project: Path) -> None:
    file_with(project, KEPT_BACK, "amplint.toml")
    file_with(project, "import torch\n\n'😋'; table = torch.zeros(3)\n", "tables.py")
    path = file_with(project, USES_TABLE)
    (told,) = json.loads(amplint("check", str(path), "--output-format", "json").stdout)
    (shown,) = await editor.diagnostics(editor.open(path))
    related = shown.related_information or ()
    assert [one.location.uri for one in related] == [
        place["filename"] and f"file://{place['filename']}" for place in (*told["causes"], *told["also"])
    ]
    assert told["also"]
    assert related[-1].message == "fails for the same cause"
    there = next(one.location for one in related if one.location.uri.endswith("tables.py"))
    assert there.range.start == types.Position(2, 14), "columns of another file count its own characters"


@driven
async def test_the_text_in_the_editor_counts_and_not_the_file(editor: Editor, project: Path) -> None:
    path = file_with(project, CLEAN)
    uri = editor.open(path, LEGACY)
    (shown,) = await editor.diagnostics(uri)
    assert (shown.code, shown.severity) == ("AMP601", types.DiagnosticSeverity.Warning)
    editor.change(uri, CLEAN)
    assert await editor.codes(uri) == []
    editor.change(uri, "\n" + LEGACY)
    (shown,) = await editor.diagnostics(uri)
    assert shown.range.start.line == 3
    editor.save(uri, path)
    assert await editor.codes(uri) == ["AMP601"]
    editor.close(uri)
    assert (await editor.within(editor.published.get())).diagnostics == ()


@driven
async def test_a_text_is_checked_when_no_other_has_come_for_a_while(editor: Editor, project: Path) -> None:
    uri = editor.open(file_with(project, CLEAN))
    await editor.diagnostics(uri)
    changed = time.monotonic()
    editor.change(uri, LEGACY)
    assert await editor.codes(uri) == ["AMP601"]
    assert time.monotonic() - changed > PAUSE
    editor.change(uri, CLEAN)
    assert await editor.actions(uri, WHOLE) == [], "who asks waits for no pause, and gets what is true now"


@driven
async def test_of_what_was_typed_meanwhile_the_last_is_checked(editor: Editor, project: Path) -> None:
    file_with(project, BAD_PACK, "amplint.toml")
    uri = editor.open(file_with(project, CLEAN))
    await editor.diagnostics(uri)
    await busy(editor, project, "other.py")
    for number in range(8):
        editor.change(uri, LEGACY + "# typed" * number)
    await editor.command("fp16")
    assert editor.published.empty()
    (project / RELEASED).touch()
    assert await editor.codes(uri) == ["AMP601"]
    await editor.silence()


@driven
async def test_an_older_text_is_never_shown_over_a_newer_one(editor: Editor, project: Path) -> None:
    """The first check ends when the text has changed."""
    file_with(project, BAD_PACK, "amplint.toml")
    uri = await busy(editor, project, "model.py")
    editor.change(uri, CLEAN)
    await editor.command("fp16")
    (project / RELEASED).touch()
    assert await editor.codes(uri) == []
    await editor.silence()


@driven
async def test_a_document_that_is_opened_again_is_not_told_of_the_one_before(editor: Editor, project: Path) -> None:
    """Both texts are version 1."""
    file_with(project, BAD_PACK, "amplint.toml")
    uri = await busy(editor, project, "model.py")
    editor.close(uri)
    assert (await editor.within(editor.published.get())).version is None
    editor.open(uri, CLEAN)
    await editor.command("fp16")
    (project / RELEASED).touch()
    assert await editor.codes(uri) == []
    await editor.silence()


@driven
async def test_the_newest_goes_first_and_nobody_waits_for_a_check(editor: Editor, project: Path) -> None:
    file_with(project, BAD_PACK, "amplint.toml")
    first = await busy(editor, project, "one.py")
    others = [editor.open(file_with(project, CLEAN, name)) for name in ("two.py", "three.py")]
    assert await editor.command("fp16") == "fp16"
    assert await editor.actions(others[0], WHOLE, automatic=True) == []
    assert editor.published.empty(), "all of this was answered beside the check"
    (project / RELEASED).touch()
    order = [(await editor.within(editor.published.get())).uri for _ in range(3)]
    assert order == [first, *reversed(others)]


@pytest.mark.parametrize(("encodings", "before"), [((), 16), (("utf-8",), 23), (("utf-32", "utf-8"), 13)])
def test_positions_are_counted_as_the_client_counts(project: Path, encodings: tuple[str, ...], before: int) -> None:
    """Before the finding stand three characters that UTF-16 has two units for and UTF-8 four, and one of two bytes."""
    text = "import torch\n\nx = {'😋é😋😋': torch.cuda.amp.autocast()}\n"

    @driven
    async def test() -> None:
        async with Editor(project, encodings=encodings) as editor:
            uri = editor.open(file_with(project, text))
            (shown,) = await editor.diagnostics(uri)
            assert editor.segment(uri, shown.range) == "torch.cuda.amp.autocast()"
            assert shown.range.start == types.Position(2, before)
            (fix, *_) = await editor.actions(uri, shown.range)
            fixed = "import torch\n\nx = {'😋é😋😋': torch.amp.autocast(\"cuda\", dtype=torch.float16)}\n"
            assert editor.applied(uri, fix) == fixed

    test()


@driven
async def test_lines_end_where_the_protocol_says(editor: Editor, project: Path) -> None:
    """Of all that Python calls the end of a line, only line feeds and carriage returns are."""
    text = "import torch\r\n'''\f\x1c\u2028'''\r\nwith torch.cuda.amp.autocast():\r\n    pass\r\n"
    uri = editor.open(file_with(project, ""), text)
    (shown,) = await editor.diagnostics(uri)
    assert shown.range.start == types.Position(2, 5)
    editor.change(uri, text.replace("\r\n", "\n"))
    (shown,) = await editor.diagnostics(uri)
    assert shown.range.start == types.Position(2, 5)


@driven
async def test_a_text_that_declares_another_encoding(editor: Editor, project: Path) -> None:
    text = "# -*- coding: latin-1 -*-\nimport torch\nx = 'é€', torch.cuda.amp.autocast()\n"
    uri = editor.open(file_with(project, ""), text)
    (shown,) = await editor.diagnostics(uri)
    assert editor.segment(uri, shown.range) == "torch.cuda.amp.autocast()"
    editor.change(uri, text.replace("latin-1", "latin-17"))
    assert await editor.codes(uri) == ["AMP901"]
    assert await editor.actions(uri, WHOLE) == []


# ---- configuration and other files ----------------------------------------------------------------------------------


@driven
async def test_each_file_is_judged_by_its_own_configuration(editor: Editor, project: Path) -> None:
    file_with(project, 'ignore = ["AMP601"]\n', "quiet/amplint.toml")
    file_with(project, '[tool.amplint]\nscenarios = ["bf16"]\nextend-select = ["AMP104"]\n', "half/pyproject.toml")
    source = "import torch\n\n\ndef f(x):\n    return torch.linalg.inv(torch.nn.Linear(3, 3)(x))\n"
    assert await editor.codes(editor.open(file_with(project, LEGACY))) == ["AMP601"]
    assert await editor.codes(editor.open(file_with(project, LEGACY, "quiet/model.py"))) == []
    (shown,) = await editor.diagnostics(editor.open(file_with(project, source, "half/model.py")))
    assert "scenarios: bf16 (device cuda)" in shown.message


@driven
async def test_configurations_that_change_hold_from_then_on(project: Path) -> None:
    path = file_with(project, LEGACY)
    async with Editor(project, watches=True) as editor:
        uri = editor.open(path)
        assert await editor.codes(uri) == ["AMP601"]
        settings = file_with(project, 'ignore = ["AMP601"]\n', "amplint.toml")
        change = types.FileEvent(settings.as_uri(), types.FileChangeType.Created)
        editor.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([change]))
        assert await editor.codes(uri) == []
        settings.unlink()
        editor.save(uri, path)
        assert await editor.codes(uri) == ["AMP601"]
        file_with(project, "torch==2.3\n", "requirements.txt")
        editor.save(uri, path)
        assert await editor.codes(uri) == []
        (registration,) = editor.registered
        assert registration.method == types.WORKSPACE_DID_CHANGE_WATCHED_FILES


@driven
async def test_a_configuration_that_is_not_valid_is_said_once(editor: Editor, project: Path) -> None:
    settings = file_with(project, 'ignor = ["AMP601"]\n', "amplint.toml")
    path = file_with(project, LEGACY)
    uri = editor.open(path)
    assert await editor.codes(uri) == []
    editor.change(uri, "\n" + LEGACY)
    assert await editor.codes(uri) == []
    assert await editor.hover(uri, "torch.cuda") is None
    assert editor.shown == [f"amplint: {settings}: unknown key 'ignor' (did you mean 'ignore'?)"]
    settings.unlink()
    editor.save(uri, path)
    assert await editor.codes(uri) == ["AMP601"]


@driven
async def test_what_another_document_holds_unsaved_counts(editor: Editor, project: Path) -> None:
    file_with(project, KEPT_BACK, "amplint.toml")
    path, other = file_with(project, USES_TABLE), file_with(project, "table = None\n", "tables.py")
    uri = editor.open(path)
    assert await editor.codes(uri) == []
    there = editor.open(other)
    await editor.diagnostics(there)
    editor.change(there, "import torch\n\ntable = torch.zeros(3)\n")
    await editor.diagnostics(there)
    editor.change(uri, USES_TABLE + "\n")
    assert len(await editor.codes(uri)) == 1
    editor.close(there)
    editor.change(uri, USES_TABLE)
    assert await editor.codes(uri) == [], "what is on disk counts again"


@driven
async def test_options_of_the_command(project: Path) -> None:
    file_with(project, f'ignore = ["AMP601"]\n{BAD_PACK}', "amplint.toml")
    other = file_with(project, 'select = ["AMP1"]\n', "other.toml")
    path = file_with(project, LEGACY + "be_broken = 1\n")
    for arguments, codes, failures in (
        ((), [], 1),
        (("--isolated",), ["AMP601"], 0),
        (("--no-plugins",), [], 0),
        (("--config", str(other)), [], 0),
    ):
        async with Editor(project, *arguments) as editor:
            assert await editor.codes(editor.open(path)) == codes
            assert len(editor.logged) == failures


# ---- what it survives -----------------------------------------------------------------------------------------------


@driven
async def test_a_text_that_does_not_parse(editor: Editor, project: Path) -> None:
    uri = editor.open(file_with(project, LEGACY), LEGACY + "def f(:\n")
    (shown,) = await editor.diagnostics(uri)
    assert (shown.code, shown.range.start) == ("AMP901", types.Position(4, 6))
    assert shown.related_information in (None, ())
    assert await editor.hints(uri) == {}
    found = await editor.hover(uri, "def f(:", len("def f("))
    assert found is not None
    assert found[0].startswith("**AMP901 unparsable-file**: ")
    assert await editor.actions(uri, shown.range) == []
    editor.change(uri, LEGACY)
    assert await editor.codes(uri) == ["AMP601"]


NO_FILES = ("untitled:Untitled-1", "untitled:/somewhere/model.py", "file://", "vscode-vfs://x/y.py")


@driven
async def test_a_document_that_is_no_file(editor: Editor) -> None:
    source = QUANTIZER.read_text()
    for uri in NO_FILES:
        editor.open(uri, source)
        (shown,) = await editor.diagnostics(uri)
        assert {one.location.uri for one in shown.related_information or ()} == {uri}
        (fix, *_) = await editor.actions(uri, shown.range)
        assert "x.to(self.project_in.weight.dtype)" in editor.applied(uri, fix)
        assert await editor.hover(uri, "self.encoder(x)") is not None
        editor.close(uri)


@driven
async def test_what_is_no_file_counts_as_in_the_folder(project: Path) -> None:
    file_with(project, 'ignore = ["AMP6"]\n', "amplint.toml")
    async with Editor(project) as editor:
        for uri in NO_FILES:
            editor.open(uri, LEGACY)
            assert await editor.codes(uri) == []
            editor.close(uri)


@driven
async def test_a_file_outside_the_folder_has_its_own_project(editor: Editor, project: Path, tmp_path: Path) -> None:
    file_with(project, 'ignore = ["AMP6"]\n', "amplint.toml")
    assert await editor.codes(editor.open(file_with(project, LEGACY))) == []
    assert await editor.codes(editor.open(file_with(tmp_path, LEGACY, "elsewhere/model.py"))) == ["AMP601"]


@driven
async def test_what_is_not_python_and_cells_of_notebooks_are_left_alone(editor: Editor, project: Path) -> None:
    editor.open(file_with(project, "[tool]\n", "pyproject.toml"), language="toml")
    cell = editor.open("vscode-notebook-cell:/x.ipynb#W0", LEGACY)
    editor.change(cell, LEGACY)
    assert await editor.hints(cell) == {}
    assert await editor.actions(cell, WHOLE) == []
    await editor.silence()


@driven
async def test_a_rule_that_raises_is_logged_once_and_the_others_go_on(editor: Editor, project: Path) -> None:
    file_with(project, BAD_PACK, "amplint.toml")
    path = file_with(project, LEGACY + "be_broken = 1\n")
    uri = editor.open(path)
    assert await editor.codes(uri) == ["AMP601"]
    editor.change(uri, "\n" + editor.texts[uri])
    assert await editor.codes(uri) == ["AMP601"]
    assert editor.logged == [
        f"amplint: the rule pack server_rules fails in BAD102 on {path}: TypeError: a rule's own mistake"
    ]


@driven
async def test_a_rule_that_ends_the_process_does_not(editor: Editor, project: Path) -> None:
    file_with(project, BAD_PACK, "amplint.toml")
    uri = editor.open(file_with(project, "import torch\nbe_gone = 1\n"))
    editor.change(uri, LEGACY)
    assert await editor.codes(uri) == ["AMP601"]
    editor.change(uri, LEGACY + "be_gone = 1\n")
    assert await editor.actions(uri, WHOLE) == []
    assert editor.logged[-1].endswith("RuntimeError: SystemExit: 3")


@driven
async def test_only_the_protocol_is_written_to_stdout(editor: Editor, project: Path) -> None:
    file_with(project, BAD_PACK, "amplint.toml")
    uri = editor.open(file_with(project, LEGACY + "be_loud = 1\n"))
    assert await editor.codes(uri) == ["AMP601"]
    assert editor.logged == []


@driven
async def test_the_code_in_the_editor_is_never_run(editor: Editor, project: Path) -> None:
    text = LEGACY + "open('ran', 'w')\nfrom other import x\n\n\ndef f():\n    y = torch.zeros(3)\n"
    file_with(project, "import torch\nopen('ran', 'w')\nx = torch.zeros(3)\n", "other.py")
    uri = editor.open(file_with(project, text))
    assert await editor.codes(uri) == ["AMP601"]
    assert (await editor.hints(uri))["y"] == ": float32"
    assert not (project / "ran").exists()


# ---- the command ----------------------------------------------------------------------------------------------------


def test_without_pygls_one_line_says_what_to_install() -> None:
    code = "import sys; sys.modules['pygls'] = None; from amplint.cli.main import main; main(['server'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == 'amplint: error: server needs pygls: pip install "amplint[server]"\n'


def test_a_configuration_that_is_named_and_not_valid_ends_it_at_once(project: Path) -> None:
    file_with(project, "ignor = []\n", "amplint.toml")
    command = [sys.executable, "-m", "amplint", "server", "--config", "amplint.toml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"amplint: error: {project / 'amplint.toml'}: unknown key 'ignor' (did you mean 'ignore'?)\n"
    )


def test_an_editor_that_is_gone_ends_it(project: Path) -> None:
    command = [sys.executable, "-m", "amplint", "server"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_ctrl_c_ends_it() -> None:
    command = [sys.executable, "-m", "amplint", "server"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"processId": null, "capabilities": {}}}'
    process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    process.stdin.flush()
    assert process.stdout.readline().startswith(b"Content-Length: ")
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == -signal.SIGINT
    process.communicate()
