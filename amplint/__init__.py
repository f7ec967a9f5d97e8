"""amplint: a linter for mixed precision in PyTorch.

``amplint check`` infers the dtype of every tensor under each way of running in mixed precision and reports where the
answer is a crash, a silent loss of accuracy, or a wasted cast. Programs call :func:`check_source` and
:func:`check_paths`; what they need is imported when a name of ``__all__`` is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amplint.api import CheckFailed, check_paths, check_source
    from amplint.config import UsageError
    from amplint.finding import Applicability, Cause, Certainty, Edit, Finding, Fix, HeldDoubt, Place, Severity
    from amplint.source import Location, Span

__version__ = "0.1.0"
__all__ = [
    "Applicability",
    "Cause",
    "Certainty",
    "CheckFailed",
    "Edit",
    "Finding",
    "Fix",
    "HeldDoubt",
    "Location",
    "Place",
    "Severity",
    "Span",
    "UsageError",
    "__version__",
    "check_paths",
    "check_source",
]

_HOMES = {
    "api": ("CheckFailed", "check_paths", "check_source"),
    "config": ("UsageError",),
    "finding": ("Applicability", "Cause", "Certainty", "Edit", "Finding", "Fix", "HeldDoubt", "Place", "Severity"),
    "source": ("Location", "Span"),
}
"""The modules of the public names."""


def __getattr__(name: str) -> object:
    from importlib import import_module

    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"amplint.{home}"), name)
    raise AttributeError(f"module 'amplint' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
