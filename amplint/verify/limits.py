"""Bounds on a child process, set by the child itself before user code runs."""

from __future__ import annotations

import os
import sys


def limit_memory(additional: int) -> None:
    """Let this process map at most ``additional`` bytes more than it does now; 0 sets no bound.

    A larger request then fails with the allocator's own error, where the machine would otherwise start to swap or end
    other processes. Does nothing where the system has no such limit (Windows, and macOS ignores it).
    """
    if not additional or sys.platform == "win32":
        return
    import resource

    try:
        with open("/proc/self/statm") as statm:
            mapped = int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        mapped = 0
    _soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    bound = mapped + additional
    if hard != resource.RLIM_INFINITY:
        bound = min(bound, hard)
    resource.setrlimit(resource.RLIMIT_AS, (bound, hard))


def forbid_core_dumps() -> None:
    """A crash of user code leaves no core file behind."""
    if sys.platform == "win32":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
