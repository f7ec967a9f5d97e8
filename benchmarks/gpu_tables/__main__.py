"""The tables of operations against a GPU: what each call gives there, beside the emulation over the CPU's kernels.

    python benchmarks/gpu_tables --out FILE [--jobs N] [--seconds N] [NAME ...]

Runs every call that ``ops.json`` and ``layers.json`` are measured on, on a CUDA GPU and emulated, without autocast and
under float16's and bfloat16's, with operands alike, unlike and integer, and with one argument in the host's memory.
What came out is written to a file of JSON lines, compressed with xz, one for each callable and side.
"""

from __future__ import annotations

import argparse
import itertools
import json
import lzma
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import calls
import torch

SIDES = (calls.GPU, calls.EMULATED)
WORKER = "--worker"


def work(side: str, names: list[str]) -> None:
    """Run the calls of some names on one side, a line of JSON each; ends early where the CUDA context is lost."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for name, found in calls.calls_by_name(names, side).items():
        rows = list(calls.ran(found, side))
        line = {"name": name, "side": side, "ran": [[r.call, r.region, r.operands, r.outcome] for r in rows]}
        lost = any(row.poisons for row in rows)
        if side == calls.EMULATED and torch.cuda.is_available():
            line["apart"] = calls.raises_apart(found)
        print(json.dumps(line), flush=True)
        if lost:
            sys.exit(1)


def measured(side: str, names: list[str], until: float) -> list[str]:
    """The lines of some names, in as many processes as it takes; a name that ends its process is left out."""
    lines: list[str] = []
    left = list(names)
    while left and time.monotonic() < until:
        command = [sys.executable, str(Path(__file__).parent), WORKER, side, *left]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
            timer = max(1.0, until - time.monotonic())
            try:
                out, _ = child.communicate(timeout=timer)
            except subprocess.TimeoutExpired:
                child.kill()
                out, _ = child.communicate()
        found = [line for line in out.splitlines() if line.endswith("}")]
        lines += found
        if child.returncode == 0:
            break
        done = {json.loads(line)["name"] for line in found}
        rest = [name for name in left if name not in done]
        print(f"{side}: a process ended with {child.returncode} near {rest[:1]}", flush=True)
        left = rest[1:]
    return lines


def main() -> int:
    if sys.argv[1:2] == [WORKER]:
        work(sys.argv[2], sys.argv[3:])
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="operations and layers; all that are known by default")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=3600.0, help="stop after so long, with what there is")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("torch sees no CUDA GPU here: there is nothing to compare with", file=sys.stderr)
        return 2
    until = time.monotonic() + arguments.seconds
    names = arguments.names or calls.names()
    shares = [names[start :: arguments.jobs * 2] for start in range(arguments.jobs * 2)]
    tasks = [(side, share) for share, side in itertools.product(shares, SIDES) if share]
    with ThreadPoolExecutor(arguments.jobs) as pool, lzma.open(arguments.out, "wt") as file:
        file.write(json.dumps({"torch": torch.__version__, "gpu": torch.cuda.get_device_name()}) + "\n")
        for lines in pool.map(lambda task: measured(*task, until), tasks):
            file.writelines(line + "\n" for line in lines)
    print(f"{len(names)} names in {arguments.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
