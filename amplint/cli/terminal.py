"""How wide the terminal is."""

from __future__ import annotations

import sys


def terminal_columns(*, to_stderr: bool = False) -> int | None:
    """Its width where stdout, or stderr, is one; None elsewhere, where nothing is wrapped."""
    stream = sys.stderr if to_stderr else sys.stdout
    if not stream.isatty():
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns
