"""A picture of a run as a terminal shows it, in colour: docs/run.svg."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent.parent
PICTURE = ROOT / "docs" / "run.svg"
COLUMNS = 100
_COMMAND = ("check", "fixtures/incidents/lookup_free_quantizer/failing.py")
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def picture() -> str:
    """The SVG."""
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    console.print(Text.from_ansi(f"\x1b[32m$\x1b[0m amplint {' '.join(_COMMAND)}\n{on_a_terminal().rstrip()}"))
    drawn = console.export_svg(title="amplint", theme=MONOKAI, unique_id="amplint")
    return "\n".join(line.rstrip() for line in _FONTS.sub("", drawn).splitlines()) + "\n"


def on_a_terminal() -> str:
    """What the command prints on a terminal of that width, colours included. Needs pseudo-terminals: not on Windows."""
    words = [sys.executable, "-m", "amplint", *_COMMAND, "--color", "always"]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    ours, theirs = pty.openpty()
    with subprocess.Popen(words, cwd=ROOT, env=environment, stdout=theirs, stderr=subprocess.DEVNULL) as process:
        os.close(theirs)
        told = _all_of(ours)
    os.close(ours)
    assert process.returncode == 1, told
    return re.sub(r"\x1b\]8;.*?\x1b\\", "", told)


def _all_of(terminal: int) -> str:
    told = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # Linux: the other side is closed
            part = b""
        if not part:
            return told.decode().replace("\r\n", "\n")
        told += part
