"""Running code that uses torch's deprecated mixed-precision names, and leaving autocast's state as it was."""

from __future__ import annotations

import warnings
from typing import Any

import torch


def run(code: str) -> dict[str, Any]:
    """The names that a module binds; warnings of deprecation are let through."""
    namespace: dict[str, Any] = {"__name__": "case"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        exec(compile(code, "case", "exec"), namespace)
    return namespace


class autocast_state:
    """Puts back the switches, dtypes, cache flag and depth of autocast."""

    def __enter__(self) -> None:
        self.before = [
            (d, torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in ("cuda", "cpu", "xla", "ipu")
        ]
        self.cache = torch.is_autocast_cache_enabled()
        self.depth = torch.autocast_increment_nesting()
        torch.autocast_decrement_nesting()

    def __exit__(self, *_: object) -> None:
        for device, enabled, dtype in self.before:
            torch.set_autocast_enabled(device, enabled)
            torch.set_autocast_dtype(device, dtype)
        torch.set_autocast_cache_enabled(self.cache)
        while torch.autocast_decrement_nesting() >= self.depth:
            pass
        while torch.autocast_increment_nesting() < self.depth:
            pass
        torch.autocast_decrement_nesting()
