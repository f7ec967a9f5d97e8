"""Rule packs of third parties, through the real command: one that is installed and announced, others that are named."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from conftest import ROOT, Completed

from amplint.config import UsageError
from amplint.plugins import Pack, load_rules
from amplint.rule import Rule, Severity

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Completed]

HOUSE = ROOT / "tests" / "packs" / "house"
CAST = "import torch\n\n\ndef energy(x: torch.Tensor):\n    return (x.float() * 1000).half()\n"
INSTALL = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages that holds the house's rules."""
    folder = tmp_path_factory.mktemp("site")
    source = shutil.copytree(HOUSE, folder / "source", ignore=shutil.ignore_patterns("build", "*.egg-info"))
    command = [sys.executable, *INSTALL, "--target", str(folder / "packages"), str(source)]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    return folder / "packages"


def start(folder: Path, *arguments: str) -> Completed:
    """Run the real command where a folder of packages is on the path."""
    path = os.pathsep.join([str(folder), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "amplint", *arguments]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    return Completed(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def packs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Put a pack of some text on this process's path."""
    folder = tmp_path / "packs"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)

    def write(name: str, text: str) -> None:
        (folder / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)

    return write


PACK = '''
from amplint.rule import ASSUMED, Rule, Severity, Suspect
import ast

class Mine(Rule):
    """Flags a call of mine()."""
    code, name, tokens, severity = "MINE101", "mine", ("mine",), Severity.ERROR

    def suspects(self, facts):
        for node in ast.walk(facts.source.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "mine":
                span = facts.span(node)
                yield Suspect(span, span, "mine() is called", facts.all_scenarios(), ASSUMED, of_weights=False)

def all_rules():
    return [Mine()]
'''


def codes(done: Completed) -> list[str]:
    return [finding["code"] for finding in json.loads(done.stdout)]


def test_an_installed_pack_is_there_unless_it_is_left_out(installed: Path, project: Path) -> None:
    """One test for all, since each run of the command takes a second."""
    (project / "a.py").write_text(CAST)
    done = start(installed, "check", "--output-format", "json", "--extend-select", "HOUSE1")
    assert codes(done) == ["HOUSE101"], done.stderr
    (finding,) = json.loads(done.stdout)
    assert (finding["location"]["row"], finding["url"], finding["severity"]) == (5, None, "warning")
    for option in ("--isolated", "--no-plugins"):
        assert start(installed, "check", option).stderr == "All checks passed: 1 file.\n"
    listed = {rule["code"] for rule in json.loads(start(installed, "rules", "--output-format", "json").stdout)}
    assert {"HOUSE101", "AMP105", "AMP901"} <= listed
    assert "HOUSE101" not in start(installed, "rules", "--no-plugins").stdout
    assert start(installed, "explain", "house101").stdout.startswith("HOUSE101 float16-cast\n")
    assert start(installed, "check", "--fix", "--unsafe-fixes").status == 0
    assert (project / "a.py").read_text() == CAST.replace(".half()", ".bfloat16()")


def test_processes_of_the_pool_have_the_pack(installed: Path, project: Path) -> None:
    for number in range(4):
        (project / f"a{number}.py").write_text(f"{CAST}# {'padding' * 90_000}\n")
    done = start(installed, "check", "--jobs", "2", "--output-format", "json")
    assert codes(done) == ["HOUSE101"] * 4, done.stderr


def test_the_examples_of_a_pack_hold(installed: Path, project: Path) -> None:
    done = start(installed, "test-rules", "house_rules")
    assert (done.status, done.stdout) == (0, "")
    assert done.stderr == "house_rules: 1 rule, 4 examples, 4 of them run: all is well.\n"


@pytest.fixture
def command() -> Run:
    from conftest import amplint

    return amplint


def test_a_configuration_names_packs_for_its_files(project: Path, packs: Callable[..., None], command: Run) -> None:
    packs("mine_pack", PACK)
    for folder in ("with", "without"):
        (project / folder).mkdir()
        (project / folder / f"{folder}.py").write_text(
            "mine()\nmine()  # noqa: MINE101\nmine()  # amplint: ignore[MINE]\n"
        )
    (project / "with" / "amplint.toml").write_text('plugins = ["mine_pack"]\nselect = ["MINE101"]\n')
    (project / "pyproject.toml").write_text('[tool.amplint]\nignore = ["AMP108"]\n')
    done = command("check", "--output-format", "concise")
    assert done.status == 1
    assert done.stdout.startswith("with/with.py:1:1: error[MINE101]") or "with/with.py:1:1" in done.stdout
    assert done.stdout.splitlines()[1:] == ["without/without.py:3:9: AMP900 no rule has the code MINE"]
    assert codes(command("check", "--select", "MINE", "--output-format", "json")) == ["MINE101"]
    assert command("check", "--no-plugins").status == 0
    done = command("check", "without", "--select", "MINE")
    assert (done.status, done.stderr) == (2, "amplint: error: unknown rule selector 'MINE'\n")


def test_rules_and_explain_know_the_packs_of_this_folder(
    project: Path, packs: Callable[..., None], command: Run
) -> None:
    packs("mine_pack", PACK)
    (project / "amplint.toml").write_text('plugins = ["mine_pack"]\n')
    assert "MINE101" in command("rules").stdout
    assert command("explain", "mine").stdout.startswith("MINE101 mine\n")
    assert command("explain", "mine101", "--isolated").status == 2


FIXING = """
    def visit_Call(self, node, suspect, visit):
        visit.report(suspect, visit.fix(Applicability.SAFE, "Mend", EDITS))

def all_rules():"""


BREAKS = "fails in MINE101: its fix breaks {} and is not applied; --ignore MINE101 leaves the rule out"


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        ('visit.replace(node, ")(")', BREAKS),
        ('visit.replace(node, "theirs()"), visit.replace(node.func, "ours")', BREAKS),
        (
            'Edit(Span(Location(99, 1), Location(99, 2)), "")',
            "fails in MINE101 on {}: ValueError: an edit of its fix lies behind the end of the file",
        ),
    ],
)
def test_a_fix_of_a_pack_that_breaks_the_file_is_the_packs_failure(
    project: Path, packs: Callable[..., None], command: Run, edits: str, says: str
) -> None:
    text = PACK.replace("import ASSUMED", "import ASSUMED, Applicability, Edit, Location, Span")
    packs("breaking_pack", text.replace("\ndef all_rules():", FIXING.replace("EDITS", edits)))
    (project / "amplint.toml").write_text('plugins = ["breaking_pack"]\nselect = ["MINE101"]\n')
    file = project / "a.py"
    file.write_text("mine()\n")
    done = command("check", "--fix")
    assert done.status == 2
    assert f"amplint: error: the rule pack breaking_pack {says.format(file)}\n" in done.stderr
    assert file.read_text() == "mine()\n"


BUILT_IN_CODE = PACK.replace("MINE101", "AMP105")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import nowhere_at_all\n", "cannot be imported: ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("raise ValueError('two\\nlines')\n", "cannot be imported: ValueError: two lines"),
        ("x = (\n", "cannot be imported: SyntaxError"),
        ("raise SystemExit(0)\n", "cannot be imported: SystemExit"),
        ("rules = []\n", "has no function all_rules() that returns its rules"),
        ("def all_rules():\n    return [0 / 0]\n", "fails in all_rules(): ZeroDivisionError"),
        ("def all_rules():\n    return None\n", "fails in all_rules(): TypeError"),
        (PACK.replace("[Mine()]", "[Mine]"), "returns from all_rules() what is no instance of amplint.rule.Rule"),
        (PACK.replace("MINE101", "mine-1"), "has a rule whose code 'mine-1' is not capital letters and three digits"),
        (PACK.replace("code, name, tokens, severity =", "code, label, tokens, severity ="), "has a rule without name"),
        (BUILT_IN_CODE, "brings the code AMP105 (wrong_pack.Mine), which another rule has: amplint_rules.amp105"),
        (PACK.replace('"mine"', '"index-write"', 1), "brings the name index-write (wrong_pack.Mine)"),
    ],
)
def test_a_pack_that_cannot_be_had_is_one_line(
    project: Path, packs: Callable[..., None], command: Run, text: str, says: str
) -> None:
    packs("wrong_pack", text)
    (project / "a.py").write_text("mine()\n")
    (project / "amplint.toml").write_text('plugins = ["wrong_pack"]\n')
    for arguments in (("check",), ("rules",), ("explain", "AMP105")):
        done = command(*arguments)
        assert (done.status, done.stdout) == (2, "")
        assert done.stderr.startswith(f"amplint: error: {project / 'amplint.toml'}: the rule pack wrong_pack {says}")
        assert done.stderr.count("\n") == 1
    assert command("check", "--isolated").status == 0


def test_a_pack_that_is_not_installed(project: Path, command: Run) -> None:
    (project / "amplint.toml").write_text('plugins = ["my-pack"]\n')
    (project / "a.py").write_text("x = 1\n")
    (project / "other").mkdir()
    (project / "other" / "amplint.toml").write_text("")
    (project / "other" / "b.py").write_text("x = 1\n")
    done = command("check")
    assert done.status == 2
    said = f"the rule pack my-pack is not installed beside amplint, in {sys.prefix} (did you mean 'my_pack'?)"
    assert done.stderr == f"amplint: error: {project / 'amplint.toml'}: {said}\nAll checks passed: 1 file.\n"
    done = command("test-rules", "my_pack.rules")
    assert (done.status, done.stdout) == (2, "")
    assert "the rule pack my_pack.rules is not installed" in done.stderr


def test_a_rule_that_raises_is_the_packs_failure(project: Path, packs: Callable[..., None], command: Run) -> None:
    raising = PACK.replace("        for node", "        raise KeyError('lost')\n        for node")
    packs("mine_pack", PACK)
    packs("wrong_pack", raising.replace("MINE", "WRONG").replace('"mine"', '"wrong"', 1))
    (project / "a.py").write_text("mine()\n")
    (project / "amplint.toml").write_text('plugins = ["mine_pack", "wrong_pack"]\n')
    done = command("check", "--output-format", "json")
    assert (done.status, codes(done)) == (2, ["MINE101"])
    lines = [line for line in done.stderr.splitlines() if "error" in line and not line.startswith("Found")]
    assert lines == [
        f"amplint: error: the rule pack wrong_pack fails in WRONG101 on {project / 'a.py'}: KeyError: 'lost'"
    ]


def test_a_pack_is_loaded_once(packs: Callable[..., None]) -> None:
    packs("mine_pack", PACK)
    rules = load_rules([Pack("mine_pack", "a"), Pack("mine_pack", "b"), Pack("amplint_rules")])
    assert [(rule.pack, rule.url) for rule in rules if rule.code == "MINE101"] == [("mine_pack", None)]
    assert {rule.pack for rule in rules if rule.code.startswith("AMP")} == {""}


def test_who_asks_for_a_pack_is_said() -> None:
    with pytest.raises(UsageError, match=r"^the installed package x: the rule pack nowhere is not installed"):
        load_rules([Pack("nowhere", "the installed package x")])


def test_a_rule_may_have_a_page() -> None:
    class Paged(Rule):
        """Has a page."""

        code, name, tokens, severity = "PAGE101", "paged", (), Severity.ERROR
        url = "https://example.invalid/PAGE101"

    assert Paged().url == "https://example.invalid/PAGE101"
