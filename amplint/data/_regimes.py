"""Calls under the autocast of every device, each device in a child process of its own."""

from __future__ import annotations

import contextlib
import multiprocessing
import queue as queues
import warnings
from typing import TYPE_CHECKING, Any

import torch

from amplint.data._apart import plainness, progress
from amplint.data._autocast import autocast_outcomes, odd_outcomes, plain_outcomes, policy
from amplint.data._calls import Failure
from amplint.data._measure import Facts
from amplint.data._policies import Cast
from amplint.emulation import calls, emulated, install

if TYPE_CHECKING:
    from collections.abc import Iterator

DEVICES = ("cuda", "cpu", "mps", "xpu")
POLICY_CALLS = 6
AT_ONCE = 2
#: Options that change what a layer computes with the same operands.
UNUSUAL = {"proj_size"}
PATIENCE = 5.0
Measured = dict[str, list[Facts]]
Casts = dict[str, list[Cast]]


def _regime(device: str, measured: Measured, queue: Any) -> None:
    """Measure the policy of every call under one device's autocast (runs in the child)."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    picked = {name: telling(facts) for name, facts in measured.items()}
    plain = {name: [plain_outcomes(f) for f in facts] for name, facts in picked.items()}
    real = device == "cpu"
    as_is = {name: [_outcomes(f, device) for f in facts] for name, facts in picked.items()} if real else {}
    found: dict[str, list[tuple[Any, list[Any], list[Any]]]] = {}
    unlike: list[str] = []
    try:
        with _emulation(device), calls() as log:
            for name, facts in picked.items():
                found[name] = []
                for position, fact in enumerate(facts):
                    log.clear()
                    outcomes, odd = _outcomes(fact, device, log)
                    if real and not _alike(as_is[name][position][0], outcomes):
                        unlike.append(name)
                    outcomes, odd = as_is[name][position] if real else (outcomes, odd)
                    found[name].append((policy(fact, plain[name][position], outcomes, log), outcomes, odd))
    except (RuntimeError, ValueError) as error:
        queue.put((device, None, [str(error)]))
        return
    queue.put((device, found, sorted(set(unlike))))


@contextlib.contextmanager
def _emulation(device: str) -> Iterator[None]:
    """A device's autocast as a program sees it; for the CPU, its own over Python kernels that say what they cast."""
    if device == "cpu":
        install("cpu")
        yield
    else:
        with emulated(device):
            yield


def _outcomes(fact: Facts, device: str, log: list[Any] | None = None) -> tuple[list[Any], list[Any]]:
    """Outcomes of the policy runs and of the odd ones; the log is of the former."""
    outcomes = autocast_outcomes(fact, device)
    kept = list(log) if log is not None else []
    odd = odd_outcomes(fact, device)
    if log is not None:
        log[:] = kept
    return outcomes, odd


def telling(facts: list[Facts]) -> list[Facts]:
    """The calls on which policies are measured: with dimensioned tensors if possible, fewest arguments first.

    Beyond those, one of each kind of text argument and of each set of operands: what they choose may be another
    operation; and one with a tensor of no dimensions beside others.
    """
    floating = [f for f in facts if f.floating]
    dimensioned = [f for f in floating if all(f.operands.values())]
    ranked = sorted(dimensioned or floating, key=plainness)
    uneven = [f for f in floating if dimensioned and f not in dimensioned and any(f.operands.values())]
    chosen = ranked[:POLICY_CALLS] + sorted(uneven, key=plainness)[:2]
    seen: set[str] = set()
    for fact in ranked:
        given = fact.call.given()
        kinds = {name for name in given if "=" in name} | {str((sorted(fact.operands), sorted(given & UNUSUAL)))}
        if kinds - seen and fact not in chosen:
            chosen.append(fact)
        seen |= kinds
    return chosen


def _alike(one: list[Any], other: list[Any]) -> bool:
    """The same outcomes, whatever the error texts."""
    return all(a == b or (isinstance(a, Failure) and isinstance(b, Failure)) for a, b in zip(one, other, strict=True))


def casts_by_device(measured: Measured) -> dict[str, Casts]:
    """What each device's autocast does, without the devices that this torch has no autocast for.

    Children are forked, so that they see the same calls. Raises RuntimeError where one dies.
    """
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    picked = {name: telling(facts) for name, facts in measured.items()}
    result: dict[str, Casts] = {}
    for started in range(0, len(DEVICES), AT_ONCE):
        devices = DEVICES[started : started + AT_ONCE]
        children = [context.Process(target=_regime, args=(device, measured, queue)) for device in devices]
        for child in children:
            child.start()
        for _ in children:
            device, found, said = _next(queue, children)
            if found is None:
                progress(f"no policies of {device}: {said[0]}")
                continue
            result[device] = {
                name: [Cast(fact, *one) for fact, one in zip(picked[name], found[name], strict=True)] for name in found
            }
            progress(f"policies under {device} measured")
            if said:
                progress(f"the emulated CPU policy differs from the real one: {', '.join(said)}")
        for child in children:
            child.join()
    return {device: result[device] for device in DEVICES if device in result}


def _next(queue: Any, children: list[Any]) -> Any:
    """The next child's findings; raises RuntimeError where one ended without."""
    while True:
        try:
            return queue.get(timeout=PATIENCE)
        except queues.Empty:
            if any(child.exitcode for child in children):
                raise RuntimeError("a child process died while policies were measured: run with fewer names") from None
