"""Nothing that a check asks the file system for lies outside of what a kept result is compared by."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cached_project import make
from conftest import ROOT

from amplint.cache.digests import Digests
from amplint.cache.surroundings import Places, Surroundings
from amplint.infer.names.folders import root_of

if TYPE_CHECKING:
    from collections.abc import Callable

ASKED = Path(__file__).with_name("asked_paths.py")


def asked(folder: Path) -> list[str]:
    """What checks of the files below ask for, outside of what is compared."""
    done = subprocess.run(
        [sys.executable, str(ASKED), str(folder)], capture_output=True, text=True, check=True, cwd=ROOT
    )
    lines = done.stdout.splitlines()
    assert int(lines.pop()) > 20, "too little was asked for"
    return lines


def surroundings(project: Path) -> str | None:
    return Surroundings(Digests({}), Places()).of(project / "package")


def checkout(folder: Path) -> Path:
    make(folder / "checkout")
    return folder / "checkout"


def source_layout(folder: Path) -> Path:
    make(folder / "checkout" / "src")
    (folder / "checkout" / "src" / "pyproject.toml").rename(folder / "checkout" / "pyproject.toml")
    return folder / "checkout" / "src"


def installed(folder: Path) -> Path:
    make(folder / "site-packages")
    metadata = folder / "site-packages" / "package-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: package\nVersion: 1\nRequires-Dist: torch>=2.2\n")
    (metadata / "RECORD").write_text("package/__init__.py,,\n")
    return folder / "site-packages" / "package"


def unpacked(folder: Path) -> Path:
    return installed(folder).parent


def nested(folder: Path) -> Path:
    """Scripts in a folder of a package that is none itself."""
    make(folder / "outer" / "package" / "tools")
    for below in ("outer", "outer/package"):
        (folder / below / "__init__.py").write_text("")
    return folder / "outer" / "package" / "tools"


def below(folder: Path) -> Path:
    """A part of an installed package, some folders below it, none of which has an ``__init__``."""
    make(folder / "made")
    part = folder / "made" / "package"
    (part / "__init__.py").unlink()
    place = folder / "site-packages" / "outer" / "one" / "two"
    place.mkdir(parents=True)
    (folder / "site-packages" / "outer" / "__init__.py").touch()
    part.rename(place / "part")
    return place / "part"


@pytest.mark.parametrize("layout", [checkout, source_layout, installed, unpacked, nested, below])
def test_a_check_asks_for_nothing_else(layout: Callable[[Path], Path], tmp_path: Path) -> None:
    assert asked(layout(tmp_path)) == []


def test_the_fixtures_are_checked_by_nothing_else() -> None:
    assert asked(ROOT / "fixtures" / "incidents") == []


def test_a_linked_folder_counts_by_what_it_leads_to(tmp_path: Path) -> None:
    project = checkout(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "linked.py").write_text("VALUE = 1\n")
    (project / "package" / "link").symlink_to(tmp_path / "elsewhere")
    before = surroundings(project)
    (tmp_path / "elsewhere" / "linked.py").write_text("VALUE = 2\n")
    assert before is not None
    assert surroundings(project) not in (before, None)


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    project = checkout(tmp_path)
    (project / "package" / "again").symlink_to(project)
    assert surroundings(project) is not None


def test_what_is_too_large_to_look_at_has_no_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = checkout(tmp_path)
    monkeypatch.setattr("amplint.cache.surroundings.MAX_ENTRIES", 5)
    assert surroundings(project) is None


def test_caches_and_version_control_do_not_count(tmp_path: Path) -> None:
    project = checkout(tmp_path)
    before = surroundings(project)
    for name in ("package/__pycache__/x.pyc", ".venv/lib/site-packages/other/__init__.py"):
        (project / name).parent.mkdir(parents=True)
    before = surroundings(project)
    for name in ("package/__pycache__/x.pyc", ".venv/lib/site-packages/other/__init__.py"):
        (project / name).write_text("")
    assert surroundings(project) == before


def test_the_project_is_the_outermost_folder_that_is_asked(tmp_path: Path) -> None:
    project = checkout(tmp_path)
    assert Places().of(project / "package").project == project
    assert Places().of(source_layout(tmp_path / "other") / "package").project == tmp_path / "other" / "checkout"
    assert Places().of(installed(tmp_path / "lib")).project == tmp_path / "lib" / "site-packages" / "package"
    assert os.path.commonpath([Places().of(nested(tmp_path)).project, tmp_path]) == str(tmp_path)


@pytest.mark.parametrize("between", ["", "between", "one/two/three"])
def test_a_folder_of_a_package_without_an_init_rests_on_the_package(tmp_path: Path, between: str) -> None:
    for start in (tmp_path, tmp_path / "site-packages"):
        folder = start / "outer" / between / "loose"
        folder.mkdir(parents=True)
        (start / "outer" / "__init__.py").touch()
        project = Places().of(folder).project
        assert folder.is_relative_to(project)
        assert project == (start / "outer" if start.name == "site-packages" else start)


def test_an_unpacked_wheel_is_a_project_until_another_lies_beside_it(tmp_path: Path) -> None:
    wheel = tmp_path / "wheel"
    (wheel / "one-1.0.dist-info").mkdir(parents=True)
    (wheel / "programs").mkdir()
    before = Surroundings(Digests({}), Places()).of(wheel / "programs")
    assert Places().of(wheel / "programs").project == wheel
    (wheel / "train.py").write_text("import programs\n")
    assert Surroundings(Digests({}), Places()).of(wheel / "programs") != before
    (wheel / "two-1.0.dist-info").mkdir()
    assert Places().of(wheel / "programs").project != wheel


def test_hidden_folders_count_in_the_package_alone(tmp_path: Path) -> None:
    """Projects are looked through once, for all of their packages."""
    project = checkout(tmp_path)
    (project / "other").mkdir()
    for name in ("package/.made/deep/code.py", "other/.made/code.py"):
        (project / name).parent.mkdir(parents=True)
        (project / name).write_text("1")
    looked = Surroundings(Digests({}), Places())
    before = [looked.of(project / name) for name in ("package", "other")]
    (project / "package/.made/deep/code.py").write_text("two")
    looked = Surroundings(Digests({}), Places())
    package, other = (looked.of(project / name) for name in ("package", "other"))
    assert package != before[0]
    assert other == before[1]


def test_a_package_may_have_a_name_that_no_import_has(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    folder = tmp_path / "code" / ".generated"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    where = Places().of(folder)
    assert where.root == root_of(folder)[0] == tmp_path / "code"
    assert where.project in (tmp_path, *tmp_path.parents)
