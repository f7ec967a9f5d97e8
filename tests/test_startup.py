"""What is not imported before it is needed: rules, the inference, libcst, and what takes long of the libraries."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import amplint_rules
import pytest
from conftest import ROOT

from amplint.announcing import announced, row_of
from amplint.plugins import installed_packs, known_rules, load_rules

if TYPE_CHECKING:
    from pathlib import Path

RUN = """
import sys
before = set(sys.modules)
from amplint.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print(*(sys.modules.keys() - before))
"""
LIBRARIES = {
    *("concurrent.futures", "difflib", "hashlib", "importlib.metadata", "importlib.resources", "json"),
    *("multiprocessing", "shutil", "tempfile", "tomllib", "traceback"),
    *("libcst", "packaging", "pathspec", "platformdirs", "rich", "yaml"),
}
"""What a clean file needs none of."""
RULE = re.compile(r"amplint_rules\.(amp\d+)_\w+")


def imported(*arguments: str, folder: Path) -> set[str]:
    """The modules that a run of ``amplint`` imports."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.splitlines()[-1].split())


def rules_in(modules: set[str]) -> set[str]:
    return {found[1] for name in modules if (found := RULE.fullmatch(name))}


def test_the_version_needs_no_engine(tmp_path: Path) -> None:
    modules = imported("--version", folder=tmp_path)
    assert not modules & LIBRARIES
    assert "amplint.engine" not in modules


@pytest.mark.parametrize("text", ["def f(x):\n    return x + 1\n", "import numpy\n\nprint(numpy.zeros(3))\n"])
def test_a_file_without_torch_needs_no_rule(text: str, tmp_path: Path) -> None:
    (tmp_path / "clean.py").write_text(text)
    modules = imported("check", "clean.py", folder=tmp_path)
    assert not modules & LIBRARIES
    assert not rules_in(modules)
    assert [name for name in modules if name.startswith(("amplint.claims", "amplint.infer.state"))] == []


def test_a_file_needs_the_rules_whose_words_it_has(tmp_path: Path) -> None:
    (tmp_path / "clean.py").write_text("import torch\n\nwith torch.autocast('cuda'):\n    x = torch.ones(3)\n")
    modules = imported("check", "--torch-version", "2.4", "clean.py", folder=tmp_path)
    assert {"amp106", "amp601"} <= rules_in(modules)
    assert not {"amp108", "amp304"} & rules_in(modules)
    assert not {"libcst", "rich", "yaml", "pathspec", "packaging"} & modules


def test_a_finding_of_a_rule_that_visits_nothing_needs_no_libcst(tmp_path: Path) -> None:
    rule = next(rule for rule in load_rules() if rule.bad and not rule.visits)
    (tmp_path / "bad.py").write_text(rule.bad[0].source)
    modules = imported("check", "--select", rule.code, "--pedantic", "--statistics", "bad.py", folder=tmp_path)
    assert "amplint.one_cause" in modules
    assert "libcst" not in modules


def test_all_rules_are_announced_as_they_are() -> None:
    rules = {rule.code: rule for rule in load_rules()}
    assert [rule.code for rule in known_rules()] == list(rules)
    for known in known_rules():
        rule = rules[known.code]
        assert row_of(known.imported()) == row_of(rule)
        assert (known.may_find(b"import torch\nx.half()"), known.url) == (
            rule.may_find(b"import torch\nx.half()"),
            rule.url,
        )


def test_a_rule_that_the_index_lacks_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    from amplint_rules import index

    rows = {name: row for name, row in index.ROWS.items() if row["code"] != "AMP105"}
    monkeypatch.setattr(index, "ROWS", {**rows, "amp999_gone": {"code": "AMP999"}})
    amplint_rules.announced_rules.cache_clear()
    try:
        known = {rule.code: rule for rule in amplint_rules.announced_rules()}
    finally:
        amplint_rules.announced_rules.cache_clear()
    assert list(known) == [rule.code for rule in amplint_rules.all_rules()]
    assert known["AMP105"].imported() is known["AMP105"]
    assert known["AMP104"].imported() is not known["AMP104"]


def test_other_processes_get_the_rule_itself() -> None:
    rule = announced("amplint_rules.amp105_index_write", {"code": "AMP105", "severity": "error"})
    rule.pack = "mine"
    again = pickle.loads(pickle.dumps(rule))
    assert again.imported() is again
    assert (again.code, again.name, again.pack) == ("AMP105", "index-write", "mine")
    assert len(pickle.dumps(rule)) < 200
    rule.pack = ""
    assert rule.imported().pack == ""


def test_an_index_that_is_out_of_date_is_said() -> None:
    with pytest.raises(LookupError, match=r"out of date: amplint_rules\.amp105_index_write has no AMP777"):
        announced("amplint_rules.amp105_index_write", {"code": "AMP777"}).imported()


def test_installed_packs_are_found_by_their_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = installed_packs()
    metadata = tmp_path / "mine-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert installed_packs() == before
    (metadata / "entry_points.txt").write_text("[amplint.rules]\nmine = mine_pack\n")
    (found,) = set(installed_packs()) - set(before)
    assert (found.module, found.asked_by) == ("mine_pack", "the installed package mine")
