// Starts `amplint server` for Python files, and hands it the scenario that is chosen.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function settings() {
  return vscode.workspace.getConfiguration("amplint");
}

function serverOptions() {
  const [command, ...args] = settings().get("command");
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const trusted = vscode.workspace.isTrusted ? [] : ["--isolated"];
  return { command, args: [...args, ...trusted], options: { cwd: folder?.scheme === "file" ? folder.fsPath : undefined } };
}

async function start() {
  const clientOptions = {
    documentSelector: [
      { scheme: "file", language: "python" },
      { scheme: "untitled", language: "python" },
    ],
    initializationOptions: { scenario: settings().get("scenario") },
  };
  client = new LanguageClient("amplint", "amplint", serverOptions(), clientOptions);
  try {
    await client.start();
  } catch (error) {
    const install = 'Install it with: pip install "amplint[server]", or name it in the setting amplint.command.';
    vscode.window.showErrorMessage(`amplint: the language server does not start (${error.message}). ${install}`);
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running?.isRunning()) await running.stop();
}

async function restart() {
  await stop();
  await start();
}

async function chooseScenario(known) {
  const name = await vscode.window.showQuickPick(known, { placeHolder: "Show the dtypes of which scenario?" });
  if (name !== undefined) await vscode.commands.executeCommand("amplint.scenario", name);
}

async function changed(event) {
  if (event.affectsConfiguration("amplint.command")) {
    await restart();
  } else if (event.affectsConfiguration("amplint.scenario") && client?.isRunning()) {
    const scenario = settings().get("scenario");
    await client.sendNotification("workspace/didChangeConfiguration", { settings: { amplint: { scenario } } });
  }
}

exports.activate = async function (context) {
  const { properties } = context.extension.packageJSON.contributes.configuration;
  const known = properties["amplint.scenario"].enum.filter((name) => name !== null);
  context.subscriptions.push(
    vscode.commands.registerCommand("amplint.chooseScenario", () => chooseScenario(known)),
    vscode.commands.registerCommand("amplint.restart", restart),
    vscode.workspace.onDidChangeConfiguration(changed),
    vscode.workspace.onDidGrantWorkspaceTrust(restart),
  );
  await start();
};

exports.deactivate = stop;
