"""Runs the cells of an example that lives in this process: in a fork, which leaves everything here as it is."""

from __future__ import annotations

import json
import os
import select
import signal
import time
import types
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING

from amplint.verify.job import BUILD_SHARE, MODES, Job, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from amplint.infer.lattice.scenarios import Scenario


def run_forked(
    example: Callable[[], Any],
    scenarios: Sequence[Scenario],
    device: str,
    path: str,
    *,
    timeout: float,
    seed: int = 0,
) -> tuple[Outcome, ...]:
    """The outcome of every cell of what ``example`` returns: ``(module, args, kwargs)``, or a module alone.

    Raises ValueError where nothing could be built, and RuntimeError without fork, or where the fork ends or outlives
    ``timeout``, in seconds.
    """
    if not hasattr(os, "fork"):
        raise RuntimeError("this needs a system with fork (Linux, macOS); elsewhere use `amplint verify`")
    receive, send = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 warns of threads; the child starts none of its own
        child = os.fork()
    if child == 0:
        os.close(receive)
        status = 1
        try:
            _work(example, scenarios, device, path, send, timeout, seed)
            status = 0
        finally:
            os._exit(status)
    os.close(send)
    try:
        data = _read(receive, time.monotonic() + timeout)
    finally:
        os.close(receive)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    lines = data.decode().splitlines()
    if not lines or lines[-1] != "done":
        raise RuntimeError(f"the run ended early or took longer than {timeout:g} s, after {len(lines)} cells")
    events = [json.loads(line) for line in lines[:-1]]
    for event in events:
        if "cannot-build" in event:
            raise ValueError(event["cannot-build"])
    return tuple(map(Outcome.from_json, events))


def _work(
    example: Callable[[], Any],
    scenarios: Sequence[Scenario],
    device: str,
    path: str,
    send: int,
    timeout: float,
    seed: int,
) -> None:
    import torch

    from amplint.verify.build import CannotBuild, Deadline, find_recipe
    from amplint.verify.cell import evaluate, plan
    from amplint.verify.run import Where

    torch.set_num_threads(1)  # OpenMP's pool does not survive a fork
    warnings.simplefilter("ignore")
    where = Where(device, "cpu")
    job = Job(path, None, device, "cpu", tuple(s.name for s in scenarios), results="", root="")
    with os.fdopen(send, "w", encoding="utf-8") as out, where.policy():

        def tell(**event: Any) -> None:
            out.write(json.dumps(event) + "\n")
            out.flush()

        namespace = types.ModuleType("amplint_example")
        deadline = Deadline.after(timeout * BUILD_SHARE)
        try:
            recipe = find_recipe(None, namespace=namespace, factory=example, seed=seed, deadline=deadline)
            built = recipe.make()
        except CannotBuild as error:
            tell(**{"cannot-build": error.reason})
        else:
            planned = [made for mode in MODES if (made := plan(recipe, built, mode, where)) is not None]
            for scenario in scenarios:
                for made in planned:
                    outcome, _ = evaluate(job, recipe, scenario, made, where, None)
                    tell(**outcome.to_json())
        out.write("done\n")


def _read(source: int, deadline: float) -> bytes:
    chunks = []
    while (left := deadline - time.monotonic()) > 0:
        ready, _, _ = select.select([source], [], [], left)
        if not ready:
            break
        chunk = os.read(source, 65536)
        if not chunk:
            break
        chunks.append(chunk)
    return b"".join(chunks)
