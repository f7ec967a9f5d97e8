"""Runs the cells of an example that lives in this process: in a fork, which leaves everything here as it is."""

from __future__ import annotations

import multiprocessing
import os
import time
import types
import warnings
from typing import TYPE_CHECKING

from amplint.verify.job import BUILD_SHARE, MODES, Job, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.connection import Connection
    from typing import Any

    from amplint.infer.lattice.scenarios import Scenario


def run_forked(
    example: Callable[[], Any], scenarios: Sequence[Scenario], device: str, path: str, *, timeout: float, seed: int = 0
) -> tuple[Outcome, ...]:
    """The outcome of every cell of what ``example`` returns: ``(module, args, kwargs)``, or a module alone.

    Raises ValueError where nothing could be built, and RuntimeError without fork, or where the fork ends or outlives
    ``timeout``, in seconds.
    """
    if not hasattr(os, "fork"):
        raise RuntimeError("this needs a system with fork (Linux, macOS); elsewhere use `amplint verify`")
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    child = context.Process(target=_work, args=(example, scenarios, device, path, send, timeout, seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 warns of threads; the child starts none of its own
        child.start()
    send.close()
    deadline = time.monotonic() + timeout
    outcomes: list[Outcome] = []
    try:
        while (left := deadline - time.monotonic()) > 0 and receive.poll(left):
            told = receive.recv()
            if told is None:
                return tuple(outcomes)
            if isinstance(told, str):
                raise ValueError(told)
            outcomes.append(told)
    except EOFError:
        pass
    finally:
        child.kill()
        child.join()
        receive.close()
    raise RuntimeError(f"the run ended early or took longer than {timeout:g} s, after {len(outcomes)} cells")


def _work(
    example: Callable[[], Any],
    scenarios: Sequence[Scenario],
    device: str,
    path: str,
    send: Connection,
    timeout: float,
    seed: int,
) -> None:
    """Send each outcome, then None; only why nothing could be built, if so."""
    import torch

    from amplint.verify.build import CannotBuild, Deadline, find_recipe
    from amplint.verify.cell import evaluate, plan
    from amplint.verify.run import Where

    torch.set_num_threads(1)  # OpenMP's pool does not survive a fork
    warnings.simplefilter("ignore")
    where = Where(device, "cpu")
    job = Job(path, None, device, "cpu", tuple(s.name for s in scenarios), results="", root="")
    with where.policy():
        namespace = types.ModuleType("amplint_example")
        deadline = Deadline.after(timeout * BUILD_SHARE)
        try:
            recipe = find_recipe(None, namespace=namespace, factory=example, seed=seed, deadline=deadline)
            built = recipe.make()
        except CannotBuild as error:
            send.send(error.reason)
            return
        planned = [made for mode in MODES if (made := plan(recipe, built, mode, where)) is not None]
        for scenario in scenarios:
            for made in planned:
                send.send(evaluate(job, recipe, scenario, made, where, None)[0])
        send.send(None)
