"""``amplint clean``: remove what checks kept for later ones."""

from __future__ import annotations

from pathlib import Path

import click

from amplint.cli.main import counted, message
from amplint.config import UsageError


@click.command("clean")
@click.option("--cache-dir", type=click.Path(file_okay=False), help="Where results are kept between runs.")
def command(cache_dir: str | None) -> None:
    """Remove what checks kept, of every version of amplint; nothing else that lies in the folder goes."""
    from amplint.cache.store import clean, default_folder

    folder = Path(cache_dir).absolute() if cache_dir is not None else default_folder()
    try:
        count = clean(folder)
    except OSError as error:
        raise UsageError(f"cannot remove {error.filename}: {error.strerror}") from error
    message(f"removed {counted(count, 'file')} from {folder}" if count else f"{folder} holds nothing to remove")
