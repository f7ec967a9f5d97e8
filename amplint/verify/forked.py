"""Runs the cells of an example that lives in this process: in a fork, which leaves everything here as it is.

Where torch sees a GPU, autograd starts threads for it with the first backward pass, and no fork can run one after that;
nor can a fork use a GPU that was used here. Then the example is pickled into a new process.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import time
import types
import warnings
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.verify.job import BUILD_SHARE, MODES, Job, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkContext, SpawnContext
    from typing import Any

    from amplint.infer.lattice.scenarios import Scenario


_IN_A_FORK = ("Unable to handle autograd's threading", "Cannot re-initialize CUDA in forked")
"""In torch's errors in a fork that cannot run a backward pass, or cannot use the GPU that its parent used."""


class _Unforkable(Exception):
    """The fork cannot run a backward pass, or cannot use the GPU."""


def run_forked(
    example: Callable[[], Any], scenarios: Sequence[Scenario], device: str, path: str, *, timeout: float, seed: int = 0
) -> tuple[Outcome, ...]:
    """The outcome of every cell of what ``example`` returns: ``(module, args, kwargs)``, or a module alone.

    Raises ValueError where nothing could be built, and RuntimeError where the process ends or outlives ``timeout``, in
    seconds, or where it cannot be forked and ``example`` cannot be pickled.
    """
    asked = _Asked(tuple(scenarios), device, path, timeout, seed)
    if hasattr(os, "fork"):
        try:
            return _outcomes(multiprocessing.get_context("fork"), example, asked)
        except _Unforkable:
            pass
    try:
        pickled = pickle.dumps(example)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise RuntimeError(_cannot_be_pickled(error)) from None
    return _outcomes(multiprocessing.get_context("spawn"), pickled, asked)


def _cannot_be_pickled(error: Exception) -> str:
    return (
        f"this needs another process, and the example cannot be pickled into one ({error}): define its classes and"
        " functions in a module that can be imported, or hide the GPU from this process, CUDA_VISIBLE_DEVICES= in its"
        " environment, so that it can be forked"
    )


@dataclass(frozen=True)
class _Asked:
    """What is to be run; ``timeout`` in seconds."""

    scenarios: tuple[Scenario, ...]
    device: str
    path: str
    timeout: float
    seed: int


def _outcomes(
    context: ForkContext | SpawnContext, example: Callable[[], Any] | bytes, asked: _Asked
) -> tuple[Outcome, ...]:
    receive, send = context.Pipe(duplex=False)
    child = context.Process(target=_work, args=(example, asked, send))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 warns of threads; the child starts none of its own
        child.start()
    send.close()
    deadline = time.monotonic() + asked.timeout
    outcomes: list[Outcome] = []
    try:
        while (left := deadline - time.monotonic()) > 0 and receive.poll(left):
            told = receive.recv()
            if told is None:
                return tuple(outcomes)
            if isinstance(told, str):
                raise _Unforkable if any(error in told for error in _IN_A_FORK) else ValueError(told)
            outcomes.append(told)
    except EOFError:
        pass
    finally:
        child.kill()
        child.join()
        receive.close()
    raise RuntimeError(f"the run ended early or took longer than {asked.timeout:g} s, after {len(outcomes)} cells")


def _work(example: Callable[[], Any] | bytes, asked: _Asked, send: Connection) -> None:
    """Send each outcome, then None; only why nothing could be run, if so."""
    import torch

    from amplint.verify.build import CannotBuild, Deadline, find_recipe
    from amplint.verify.cell import evaluate, plan
    from amplint.verify.run import Where

    torch.set_num_threads(1)  # OpenMP's pool does not survive a fork
    warnings.simplefilter("ignore")
    try:
        torch.ones(1, requires_grad=True).sum().backward()
    except RuntimeError as error:
        send.send(str(error))
        return
    try:
        factory = pickle.loads(example) if isinstance(example, bytes) else example
    except Exception as error:
        send.send(_cannot_be_pickled(error))
        return
    device, path, scenarios = asked.device, asked.path, asked.scenarios
    where = Where(device, "cpu")
    job = Job(path, None, device, "cpu", tuple(s.name for s in scenarios), results="", root="")
    with where.policy():
        namespace = types.ModuleType("amplint_example")
        deadline = Deadline.after(asked.timeout * BUILD_SHARE)
        try:
            recipe = find_recipe(None, namespace=namespace, factory=factory, seed=asked.seed, deadline=deadline)
            built = recipe.make()
        except CannotBuild as error:
            send.send(error.reason)
            return
        planned = [made for mode in MODES if (made := plan(recipe, built, mode, where)) is not None]
        for scenario in scenarios:
            for made in planned:
                send.send(evaluate(job, recipe, scenario, made, where, None)[0])
        send.send(None)
