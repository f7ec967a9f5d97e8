"""A process that has imported torch, and forks, so that no other waits for torch to be imported anew.

Started by :mod:`amplint.verify.warm`, on the other side of a socket. Nothing is computed here: a fork finds torch as a
new process does, without a thread of autograd's or OpenMP's and without a random number drawn.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import tempfile
from importlib import import_module

from amplint.verify.warm import NUMBER

_PAUSE = 0.02


def serve(descriptor: int) -> str:
    """Fork whenever that is asked for, and tell how the fork ended. Returns in the fork, with what that is to run. This
    process ends with the other side, and takes the fork with it."""
    with contextlib.suppress(Exception):  # what cannot be imported is for the fork to say
        for name in ("build", "cell", "run"):
            import_module(f"amplint.verify.{name}")
    side = socket.socket(fileno=descriptor)
    while True:
        asked, descriptors, _flags, _address = socket.recv_fds(side, 1 << 16, 1)
        if not asked:
            os._exit(0)
        fork = os.fork()
        if fork == 0:
            run = _become(asked.decode(), descriptors[0])
            side.sendall(NUMBER.pack(os.getpid()))
            side.close()
            return run
        os.close(descriptors[0])
        ended, status = 0, 0
        while not ended:
            if select.select([side], [], [], _PAUSE)[0]:  # nothing is asked meanwhile: the other side is gone
                _end(fork)
            ended, status = os.waitpid(fork, os.WNOHANG)
        side.sendall(NUMBER.pack(os.waitstatus_to_exitcode(status)))


def _become(asked: str, output: int) -> str:
    """Take a group, output, folder, environment and argument of its own; what to run."""
    run, argument, work, *variables = asked.split("\0")
    os.setsid()
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.chdir(work)
    for variable in variables:
        name, _, os.environ[name] = variable.partition("=")
    tempfile.tempdir = None
    sys.argv[1:] = [argument]
    return run


def _end(fork: int) -> None:
    """End the fork, with all that it started, and this process."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            kill(fork, signal.SIGKILL)
    os._exit(0)
