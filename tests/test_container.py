"""The Dockerfile: its steps, without a container."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

from ci_scratch import HAZARD, run
from snapshot import ROOT, copy_project, fresh_environment


def instructions() -> list[tuple[str, str]]:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines if line)]


def test_container_steps(tmp_path: Path) -> None:
    """What COPY brings is enough to build from, and pip's lines install a command that works without torch."""
    project, source, wheels = copy_project(tmp_path / "project"), tmp_path / "source", tmp_path / "wheels"
    source.mkdir()
    binaries = fresh_environment(tmp_path / "environment")
    places = {"/source": str(source), "/wheels": str(wheels), "python ": f"{binaries / 'python'} "}

    def here(text: str) -> str:
        for place, real in places.items():
            text = re.sub(rf"(?<!\S){place}", real, text)
        return text

    for name, rest in instructions():
        if name == "COPY":
            *files, target = here(rest).split()
            for file in files:
                if (project / file).is_dir():
                    shutil.copytree(project / file, target)
                else:
                    shutil.copy(project / file, Path(target))
        elif name == "RUN" and "python -m pip" in rest:
            done = run(here(re.sub(r"^--mount=\S+ +", "", rest)), tmp_path)
            assert done.returncode == 0, done.stderr
    (entry,) = (json.loads(rest) for name, rest in instructions() if name == "ENTRYPOINT")
    (arguments,) = (json.loads(rest) for name, rest in instructions() if name == "CMD")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "model.py").write_text(HAZARD)
    done = run(shlex.join([str(binaries / entry[0]), *arguments]), tmp_path / "code")
    assert done.returncode == 1, done.stderr
    assert "AMP105" in done.stdout
    assert run(f"{binaries / 'python'} -c 'import torch'", tmp_path).returncode != 0


def test_container_leaves_root_and_has_in_its_context_what_it_copies() -> None:
    names = [name for name, _ in instructions()]
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert "RUN" not in names[names.index("USER") :]
    copied = [file for name, rest in instructions() if name == "COPY" for file in rest.split()[:-1]]
    listed = (ROOT / ".dockerignore").read_text().splitlines()
    assert sorted(line[1:] for line in listed if line.startswith("!")) == sorted(copied)
