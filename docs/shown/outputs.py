"""Run what the pages show, and put what came of it into them.

Comments before a block say what it is:

- ``<!-- file: PATH -->``: a file of the page's own folder, from here on;
- ``<!-- output of: COMMAND -->``: what the command prints; ``messages of`` for stderr, ``errors of`` for a failed test.

On a page with files the commands of its ``sh`` blocks run too, in their order and in that folder. On any other page
only those with an output run, in the root of the source.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent.parent
_BLOCK = re.compile(
    r"(?:^<!-- (?P<role>file|(?:output|messages|errors) of): (?P<subject>.*?) -->\n+)?"
    r"^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_GIT = {f"GIT_{who}_{what}": "amplint@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


class FailedError(Exception):
    """A command of a page is refused, or there is no such program."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command printed."""

    command: str
    stdout: str
    stderr: str

    def shown(self, role: str) -> str:
        """The part that a block of that role shows."""
        text = self.stderr if role == "messages of" else self.stdout
        if role == "errors of":
            lines = [line.removeprefix("E ").strip() for line in text.splitlines() if line.startswith("E ")]
            text = "\n".join(lines)
        return text.strip("\n") + "\n"


def blocks(text: str) -> list[re.Match[str]]:
    """The fenced blocks of a page, with ``role`` and ``subject`` where a comment says what they are."""
    return list(_BLOCK.finditer(text))


def commands(block: str) -> Iterator[str]:
    """The lines of a ``sh`` block, without comments."""
    for line in block.splitlines():
        command = " ".join(shlex.split(line, comments=True)) if "#" in line else line.strip()
        if command:
            yield command


def with_outputs(text: str) -> str:
    """The same page, with what its commands print now. Raises FailedError."""
    found = blocks(text)
    roles = {block["role"] for block in found} - {None}
    if not roles:
        return text
    with tempfile.TemporaryDirectory() as folder:
        walk = "file" in roles
        written, end = [], 0
        last: Ran | None = None
        for block in found:
            role, subject = block["role"], block["subject"]
            new = block["text"]
            if role == "file":
                path = Path(folder, subject)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(new, encoding="utf-8")
            elif role is not None:
                if last is None or last.command != subject:
                    last = run(subject, Path(folder) if walk else ROOT)
                new = last.shown(role)
            elif walk and block["language"] == "sh":
                for command in commands(new):
                    last = run(command, Path(folder))
            written += [text[end : block.start("text")], new]
            end = block.end("text")
        return "".join((*written, text[end:]))


def run(command: str, folder: Path) -> Ran:
    """Run one line of a page in a folder; ``amplint`` and ``pytest`` are those of this interpreter."""
    words = shlex.split(command)
    if words[0] in ("amplint", "pytest"):
        options = ["-q", "-p", "no:cacheprovider"] if words[0] == "pytest" else []
        words = [sys.executable, "-m", words[0], *options, *words[1:]]
    elif words[0] != "git":
        raise FailedError(f"{command}: only amplint, pytest and git are run")
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, **_GIT, "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": "", "PYTHONDONTWRITEBYTECODE": "1"}
    for decided_elsewhere in ("FORCE_COLOR", "NO_COLOR"):
        environment.pop(decided_elsewhere, None)
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise FailedError(f"{command}: status {done.returncode}\n{done.stderr}")
    return Ran(command, done.stdout.replace(f"{folder}{os.sep}", ""), done.stderr.replace(f"{folder}{os.sep}", ""))
