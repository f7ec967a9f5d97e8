"""Whether output is coloured: as the command line says, else the environment, else on a terminal."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, TextIO

import click

if TYPE_CHECKING:
    from rich.console import Console

When = Literal["auto", "always", "never"]

color_option = click.option(
    "--color",
    type=click.Choice(("auto", "always", "never")),
    default="auto",
    show_default=True,
    help="Colour the report; auto: on a terminal, or as NO_COLOR or FORCE_COLOR say.",
)


def coloured(stream: TextIO, when: When = "auto") -> bool:
    """Whether to colour what goes to a stream."""
    if when != "auto":
        return when == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def console(stream: TextIO) -> Console:
    """A console that colours what it prints to a stream, whatever the environment says."""
    from rich.console import Console

    return Console(file=stream, force_terminal=True, color_system="standard", no_color=False, highlight=False)
