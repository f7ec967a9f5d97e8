"""The workflow that tests and publishes this project."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from ci_scratch import valid
from packaging.specifiers import SpecifierSet
from snapshot import ROOT

FILE = ROOT / ".github" / "workflows" / "ci.yml"
WORKFLOW: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
PYTHONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]


def test_it_is_valid() -> None:
    valid("vendor.github-workflows", FILE)


def test_workflow_has_every_python_that_is_supported() -> None:
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    matrix = WORKFLOW["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["python"] == PYTHONS
    assert sorted(system.split("-")[0] for system in matrix["os"]) == ["macos", "ubuntu", "windows"]
    prefix = "Programming Language :: Python :: 3."
    assert [text.rpartition(" ")[2] for text in project["classifiers"] if text.startswith(prefix)] == PYTHONS
    allowed = SpecifierSet(project["requires-python"])
    assert [f"3.{minor}" for minor in range(6, 15) if f"3.{minor}" in allowed] == PYTHONS


def test_only_a_tag_publishes_and_without_a_password() -> None:
    publish = WORKFLOW["jobs"]["publish"]
    assert publish["if"] == "startsWith(github.ref, 'refs/tags/v')"
    assert set(publish["needs"]) == set(WORKFLOW["jobs"]) - {"publish"}
    assert publish["permissions"] == {"id-token": "write"}
    assert "secrets" not in str(WORKFLOW)
