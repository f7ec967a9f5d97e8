"""Attributes replaced for a while."""

from __future__ import annotations

import contextlib
from typing import Any

_MISSING = object()


class Patches(contextlib.ExitStack):
    """Puts every attribute back on exit, the latest first."""

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Replace an attribute of a module or class, or add it for a while."""
        before = vars(owner).get(name, _MISSING)
        setattr(owner, name, value)
        if before is _MISSING:
            self.callback(delattr, owner, name)
        else:
            self.callback(setattr, owner, name, before)
