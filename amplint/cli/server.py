"""``amplint server``: findings, fixes and dtypes in editors."""

from __future__ import annotations

import importlib.util
import signal
import sys
from typing import TYPE_CHECKING

import click

from amplint.cli.judging import Judging, config_option, isolated_option, judging_options, no_plugins_option
from amplint.cli.main import message
from amplint.config import Configurations, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from amplint.engine import Options
    from amplint.server.analyser import OptionsOf


@click.command("server")
@config_option
@isolated_option
@no_plugins_option
def command(config: str | None, isolated: bool, no_plugins: bool) -> None:
    """Serve an editor by the language server protocol, over stdin and stdout.

    Shows findings with their fixes, and the dtype of each tensor. Editors start it; docs/editors.md has the lines for
    each. Reads the code in the editor and on disk, and never imports it.

    \b
    Exit status: 0 when the editor has left, 2 wrong usage.
    """
    if importlib.util.find_spec("pygls") is None:
        raise UsageError('server needs pygls: pip install "amplint[server]"')
    if sys.stdin.isatty():
        message("an editor starts this, and speaks the language server protocol to it; press Ctrl-C to leave")

    def new_options() -> OptionsOf:
        judging = Judging(
            Configurations(only=config, isolated=isolated),
            judging_options,
            plugins=not (isolated or no_plugins),
        )

        def options_of(path: Path) -> Options:
            return judging.valid_file(path).options

        return options_of

    from amplint.server.language_server import serve
    from amplint.server.streams import protocol_streams

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # what waits for the next message cannot be interrupted otherwise
    with protocol_streams() as (reader, writer):
        serve(new_options, reader, writer)
