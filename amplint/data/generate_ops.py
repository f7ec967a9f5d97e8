"""Generates ``ops.json``: what torch operations do to dtypes, with and without autocast.

Usage: ``python -m amplint.data.generate_ops [OUT] [--only NAME ...]`` (a few minutes; ``--only`` prints nothing else).

Every entry is measured by running the callable on small CPU tensors in many combinations of dtypes: without autocast,
under the CPU's own autocast, and under the policies of cuda, mps and xpu put over CPU kernels (``amplint.emulation``),
each in a child process.  ``unsupported`` comes from OpInfo's declarations, ``since`` from ``policy_history.json``: the
first torch release on record from which on the policy holds.  Parameters are those of the installed torch.

``result`` is a rule (``amplint.data._rules``), a list of rules, ``…*`` for a list of unfixed length, ``each`` for one
whose parts have the dtypes of the parts of the argument.  Keys beyond the plain ones:

* ``holds``: the operands that ``result`` is known for, where not all: ``real`` (no complex or bool ones), ``mixed`` (of
  those, not integers alone) or ``floating``.
* ``even``: ``result`` is known only where all operands have dimensions, or none has.
* ``cases``: what differs where the parameters in ``needs`` are passed (not None), with ``params`` of that overload
  where they differ; ``needs`` may name ``p=True`` or ``p=text``, and ``p*`` for several tensors; of an equation,
  whether it is ``outer`` or sums.  The first that fits.
* ``scalar``: parameters without which the result has no dimensions though an operand has; null where that may be.
* ``dimensioned``: the result has dimensions whatever the tensors have (``amplint.data._dimensions``).
* ``fields``: names of the result's parts.
* ``numbers``: parameters whose Python numbers decide the dtype.
* ``variadic``: a parameter that gathers ``*args``.
* ``bare``: parameters of strict groups that may have another dtype where they have no dimensions.
* ``strict_without``: groups that are strict only where the parameter that is the key holds no floating tensor.
* ``under``: results under autocast, by device, where they are not those of the operands that the policy casts; ``low``
  is the dtype that autocast is set to, and ``a|b`` either.
* ``unsure_under``: by device, operands for which results under autocast are not known: ``integers``, ``other`` (the
  16-bit dtype that it is not set to), ``uneven`` (tensors of no dimensions beside others).
* ``before``: by release, the result that the operation had before it (``result_history.json``).
* ``unsupported_until``: by device and dtype, the last release that is known to lack the kernel which this one has
  (``support_history.json``).
* ``unsupported_but``: parameters, and the values with which ``unsupported`` holds for few rows only, as without them;
  many rows run (``amplint.data._sizes``).
* ``unsupported_with``: parameters, and the values with which torch refuses low precision on every device.
* ``attribute``: not called.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch

from amplint.data._apart import progress
from amplint.data._catalog import catalog
from amplint.data._entries import entry_of
from amplint.data._measure import measure
from amplint.data._policies import add_older_results, add_policies
from amplint.data._regimes import Measured, casts_by_device
from amplint.data.generate_policy import write
from amplint.emulation import policies as policies_of


def generate(only: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The whole table, or the named entries of it."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    targets, skipped = catalog((lambda name: name in only) if only else lambda _name: True)
    progress(f"{len(targets)} callables with {sum(len(t.calls) for t in targets.values())} calls")
    measured: Measured = {}
    for name, target in targets.items():
        facts = [f for f in map(measure, target.calls) if f is not None]
        if facts:
            measured[name] = facts
        else:
            skipped["no two dtypes run on CPU"] += 1
    progress("measured without autocast")
    casts = casts_by_device(measured)
    history = {device: policies_of(device) for device in casts}
    entries: dict[str, Any] = {}
    for name, facts in measured.items():
        entry = entry_of(targets[name], facts)
        if entry is None:
            skipped["result follows no rule"] += 1
            progress(f"{name}: result follows no rule")
            continue
        if targets[name].attribute:
            entry["attribute"] = True
        add_policies(name, entry, {device: found[name] for device, found in casts.items()}, history)
        add_older_results(name, entry)
        entries[name] = entry
    progress(f"{len(entries)} entries; left out: {dict(skipped)}")
    version = torch.__version__.partition("+")[0]
    return {"torch": version, "generator": "python -m amplint.data.generate_ops", "ops": entries}


if __name__ == "__main__":
    write(generate, Path(__file__).with_name("ops.json"), "Measure what torch operations do to dtypes.")
