"""editors/ and docs/editors.md: they start the server that there is, and name what it knows."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from conftest import ROOT

from amplint import __version__
from amplint.infer.lattice.scenarios import SCENARIOS, find_scenario

if TYPE_CHECKING:
    from pathlib import Path

EXTENSION = ROOT / "editors" / "vscode"
MANIFEST = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "editors.md").read_text(encoding="utf-8")

PRETENDED = """
const told = [];
const settings = { command: ["amplint", "server"], scenario: "fp16" };
const listeners = {};
const commands = {};
const vscode = {
  workspace: {
    isTrusted: process.argv[2] === "trusted",
    workspaceFolders: [{ uri: { scheme: "file", fsPath: "/work" } }],
    getConfiguration: () => ({ get: (key) => settings[key] }),
    onDidChangeConfiguration: (listener) => (listeners.settings = listener),
    onDidGrantWorkspaceTrust: (listener) => (listeners.trust = listener),
  },
  window: {
    showQuickPick: async (names) => names[3],
    showErrorMessage: (message) => told.push(["error", message]),
  },
  commands: {
    registerCommand: (name, run) => (commands[name] = run),
    executeCommand: async (...given) => told.push(given),
  },
};
class LanguageClient {
  constructor(id, name, server, client) { told.push(["start", server, client.initializationOptions]); }
  async start() { if (process.argv[3] === "missing") throw new Error("not found"); this.runs = true; }
  async stop() { told.push(["stop"]); }
  isRunning() { return this.runs; }
  async sendNotification(...given) { told.push(given); }
}
const load = require("module")._load;
require("module")._load = (name, ...rest) =>
  name === "vscode" ? vscode : name === "vscode-languageclient/node" ? { LanguageClient } : load(name, ...rest);
(async () => {
  const extension = require(process.argv[4] + "/extension.js");
  const packageJSON = require(process.argv[4] + "/package.json");
  await extension.activate({ subscriptions: [], extension: { packageJSON } });
  await commands["amplint.chooseScenario"]();
  settings.scenario = "bf16";
  await listeners.settings({ affectsConfiguration: (name) => name === "amplint.scenario" });
  vscode.workspace.isTrusted = true;
  await listeners.trust();
  await extension.deactivate();
  console.log(JSON.stringify(told));
})();
"""
"""Runs the extension in Node with the API of Visual Studio Code pretended, and prints what it did with it."""


def extension(*arguments: str, folder: Path) -> list[list[object]]:
    if shutil.which("node") is None:
        pytest.skip("there is no Node.js")
    script = folder / "run.js"
    script.write_text(PRETENDED, encoding="utf-8")
    command = ["node", str(script), *arguments, str(EXTENSION)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    told: list[list[object]] = json.loads(done.stdout)
    return told


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_the_extension_offers_every_scenario_and_has_this_version() -> None:
    setting = MANIFEST["contributes"]["configuration"]["properties"]["amplint.scenario"]
    assert setting["enum"] == [*(scenario.name for scenario in SCENARIOS), None]
    assert MANIFEST["version"] == __version__


def test_the_extension_starts_the_server_and_hands_it_the_scenario(tmp_path: Path) -> None:
    server = {"command": "amplint", "args": ["server"], "options": {"cwd": "/work"}}
    change = {"settings": {"amplint": {"scenario": "bf16"}}}
    assert extension("trusted", "installed", folder=tmp_path) == [
        ["start", server, {"scenario": "fp16"}],
        ["amplint.scenario", SCENARIOS[3].name],
        ["workspace/didChangeConfiguration", change],
        ["stop"],
        ["start", server, {"scenario": "bf16"}],
        ["stop"],
    ]


def test_the_extension_loads_nothing_from_a_workspace_that_is_not_trusted(tmp_path: Path) -> None:
    first, *_, last, _ = extension("untrusted", "installed", folder=tmp_path)
    assert first[1]["args"] == ["server", "--isolated"]  # type: ignore[index]
    assert last[1]["args"] == ["server"]  # type: ignore[index]


def test_the_extension_says_what_to_install(tmp_path: Path) -> None:
    told = extension("trusted", "missing", folder=tmp_path)
    assert told[1][0] == "error"
    assert 'pip install "amplint[server]"' in str(told[1][1])


def test_the_extension_packs(tmp_path: Path) -> None:
    if shutil.which("npx") is None:
        pytest.skip("there is no npx")
    folder = tmp_path / "vscode"
    shutil.copytree(EXTENSION, folder, ignore=shutil.ignore_patterns("node_modules", "*.vsix", "package-lock.json"))

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
        if re.search(r"ENOTFOUND|ECONNREFUSED|ETIMEDOUT|EAI_AGAIN", done.stderr):
            pytest.skip("the package registry cannot be reached")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("npm", "install", "--no-audit", "--no-fund")
    packed = run("npx", "--yes", "@vscode/vsce@3", "package", "--allow-missing-repository")
    assert f"amplint-{__version__}.vsix" in packed
    for name in ("extension.js", "package.json", "LICENSE.txt", "vscode-languageclient/"):
        assert name in packed
    assert f"code --install-extension amplint-{__version__}.vsix" in PAGE


def test_the_lines_for_editors_are_what_they_are_written_in() -> None:
    tomllib = pytest.importorskip("tomllib")
    servers, *_ = tables = [tomllib.loads(block) for block in blocks("toml")]
    assert len(tables) == 2
    assert servers["language-server"]["amplint"]["command"] == "amplint"
    assert [json.loads(block) for block in blocks("json")]
    for block in blocks("elisp"):
        assert re.sub(r'"[^"]*"', "", block).count("(") == re.sub(r'"[^"]*"', "", block).count(")")


def test_the_lines_for_editors_name_scenarios_that_there_are() -> None:
    named = re.findall(r'scenario"?:? =? ?"([^"]+)"', PAGE)
    assert len(named) == 5
    assert all(find_scenario(name) is not None for name in named)
    assert PAGE.count('"amplint" "server"') + len(re.findall(r'"amplint", "server"', PAGE)) == 4
