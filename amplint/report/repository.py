"""Files by the name that a service knows them by: relative to the root of the repository that it checked out."""

from __future__ import annotations

import os
from pathlib import Path

from amplint.files import display_path


def path_in(root_variable: str, path: Path) -> str:
    """Relative to the folder that an environment variable of the service names, else as people see it."""
    root = os.environ.get(root_variable)
    if root:
        try:
            return path.relative_to(Path(root)).as_posix()
        except ValueError:
            pass
    return str(display_path(path))
