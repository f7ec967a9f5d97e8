"""Generates ``support_history.json``: what older releases of torch had no float16 or bfloat16 kernels for.

Usage: ``python -m amplint.data.generate_support_history PYTHON... [--out OUT]``, each PYTHON an interpreter with a
release of torch of its own in a CUDA build (no GPU is needed), expecttest and PyYAML.

``releases`` are those read; ``ops`` holds, by OpInfo's name and device (cuda alone: the CPU got its float16 kernels
one by one, for hardly anybody), the low-precision dtypes that torch's own test
declarations have now and did not have then, each with the last release read that lacks it. An operation that a release
does not have at all is not counted there. What is declared is checked by torch's own tests (``test_dtypes``).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

DEVICES = ("cuda",)
NOT_AS_DECLARED = frozenset({"multinomial"})
"""Operations whose usual call takes another path than the one that lacks the kernel: samples without replacement."""
Lacking = dict[str, dict[str, list[str]]]


def declared_lacking() -> dict[str, Any]:
    """The release of the torch that runs this, and by OpInfo's name what no variant has on a device where one has
    float32. Gates on GPU generations count as passed. Nothing but torch is needed, of any release from 1.13 on."""
    warnings.simplefilter("ignore")
    import torch
    from torch.testing._internal import common_cuda

    for gate in [name for name in vars(common_cuda) if name.startswith(("SM", "PLATFORM_SUPPORTS"))]:
        if "FP8" not in gate and "MX" not in gate and "CK" not in gate:
            setattr(common_cuda, gate, True)
    from torch.testing._internal.common_methods_invocations import op_db

    variants: dict[str, list[Any]] = {}
    for op in op_db:
        variants.setdefault(op.name, []).append(op)
    lows = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    ops: Lacking = {}
    for name, declared in variants.items():
        ops[name] = {}
        for device in DEVICES:
            has = set().union(*[op.supported_dtypes(device) for op in declared])
            if torch.float32 in has:
                ops[name][device] = [low for low, dtype in lows.items() if dtype not in has]
    return {"torch": torch.__version__.partition("+")[0], "ops": ops}


def history(older: list[dict[str, Any]], now: dict[str, Any]) -> dict[str, Any]:
    """The table from what is lacking in older releases and in the present one."""
    ops: dict[str, dict[str, dict[str, str]]] = {}
    older = sorted(older, key=lambda read: [int(part) for part in read["torch"].split(".")])
    for read in older:
        release = ".".join(read["torch"].split(".")[:2])
        for name, devices in read["ops"].items():
            for device, dtypes in devices.items():
                if name in NOT_AS_DECLARED:
                    continue
                present = now["ops"].get(name, {}).get(device)
                gained = [low for low in dtypes if present is not None and low not in present]
                if gained:
                    ops.setdefault(name, {}).setdefault(device, {}).update(dict.fromkeys(gained, release))
    return {"releases": [read["torch"] for read in older], "ops": dict(sorted(ops.items()))}


def main() -> None:
    """Write the table to the path given, else beside this file; ``--read`` prints what one release declares."""
    parser = argparse.ArgumentParser(description="Collect what older releases lacked in float16 or bfloat16.")
    parser.add_argument("python", nargs="*", metavar="PYTHON")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("support_history.json"))
    parser.add_argument("--read", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        read = json.dumps(declared_lacking())
        sys.stdout.write(f"\n{read}\n")
        return
    reads = []
    for python in options.python:
        done = subprocess.run([python, str(Path(__file__).resolve()), "--read"], stdout=subprocess.PIPE, check=True)
        reads.append(json.loads(done.stdout.splitlines()[-1]))
    table = history(reads, declared_lacking())
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in table["ops"].items())
    head = {"generator": f"python -m amplint.data.{Path(__file__).stem} PYTHON...", "releases": table["releases"]}
    top = "".join(f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in head.items())
    options.out.write_text("{\n" + top + ' "ops": {\n' + rows + "\n }\n}\n")


if __name__ == "__main__":
    main()
