"""What the emulation does under the torch that runs this: ``python benchmarks/emulation_versions.py [DEVICE ...]``.

Needs torch (2.4 or later) and this checkout, nothing else; other releases of torch go into environments of their own.
Prints for each device the operations that are cast as on it, how many of the checks of ``tests/emulation_checks.py``
pass, and for cuda how many hazards of ``tests/hazard_matrix.py`` fail where they do on cuda and pass where they do not.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
sys.path[:0] = [str(ROOT), str(TESTS)]
LOWS = {"float16": torch.float16, "bfloat16": torch.bfloat16}


def install(device: str) -> dict[str, Any]:
    """How many operations are cast as on the device, and those registered for it that are not."""
    from amplint.emulation.kernels import install
    from amplint.emulation.policy import policies, release

    done = install(device)
    listed = set(policies(device, release(torch.__version__)))
    registered = torch._C._dispatch_get_registrations_for_dispatch_key(f"Autocast{device.upper()}")
    missing = {name.removeprefix("aten::") for name in registered} - listed
    return {"operations": len(done), "missing": sorted(missing), "unregistered": sorted(listed - set(done))}


def hazards() -> dict[str, Any]:
    """Outcomes that are not as on cuda, of every hazard and its repaired twin in both dtypes."""
    from hazard_matrix import HAZARDS  # type: ignore[import-not-found]

    from amplint.emulation import emulated
    from amplint.emulation.gaps import Gap, gap

    table: dict[str, Any] = {"right": 0, "gaps": [], "wrong": []}
    with emulated("cuda"):
        for hazard in HAZARDS:
            for bad in (True, False):
                for name, dtype in LOWS.items():
                    torch.manual_seed(0)
                    failure = failing(hazard.module(bad), dtype)
                    if isinstance(failure, Exception) and gap(failure) is Gap.CPU_ONLY:
                        table["gaps"].append(f"{hazard.name} ({name}): {failure}")
                    elif (failure is not None) == (bad and name in hazard.fails):
                        table["right"] += 1
                    else:
                        table["wrong"].append(f"{hazard.name} ({name}, {'bad' if bad else 'repaired'}): {failure}")
    return table


def failing(module: torch.nn.Module, dtype: torch.dtype) -> Exception | str | None:
    """The error of a forward pass under autocast and a backward pass outside, or that the result is not finite."""
    try:
        with torch.autocast("cuda", dtype=dtype):
            out = module.to("cuda")(torch.randn(2, 8, 16, device="cuda"))
        if out.requires_grad:
            out.float().sum().backward()
    except (RuntimeError, TypeError, AttributeError) as error:
        return error
    return None if torch.isfinite(out.detach().float()).all() else "not finite"


def child(*arguments: str) -> Any:
    done = subprocess.run([sys.executable, "-W", "ignore", *arguments], capture_output=True, text=True, check=False,
                          env={"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"})  # fmt: skip
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def main() -> None:
    """Each part in a process of its own, since a policy stays installed."""
    me = str(Path(__file__).resolve())
    print(f"torch {torch.__version__}")
    for device in sys.argv[1:] or ["cuda", "xpu", "mps"]:
        installed = child(me, "--install", device)
        if isinstance(installed, str):
            print(f"  {device}: {installed}")
            continue
        checks = child(str(TESTS / "emulation_checks.py"), device)
        passed = [name for name, failure in checks.items() if not failure] if isinstance(checks, dict) else checks
        print(f"  {device}: {installed['operations']} operations, missing {installed['missing'] or 'none'}")
        print(f"    checks passed: {len(passed)} of {len(checks)}")
        for name in sorted(set(checks) - set(passed)) if isinstance(checks, dict) else ():
            print(f"      {name}: {checks[name].strip().splitlines()[-1]}")
        if device == "cuda":
            found = child(me, "--hazards")
            total = found["right"] + len(found["wrong"]) + len(found["gaps"])
            print(f"    hazards: {found['right']} of {total} as on cuda, {len(found['gaps'])} gaps of CPU kernels")
            for line in [*found["gaps"], *found["wrong"]]:
                print(f"      {line.splitlines()[0]}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--install"]:
        print(json.dumps(install(sys.argv[2])))
    elif sys.argv[1:2] == ["--hazards"]:
        torch.set_num_threads(1)
        print(json.dumps(hazards()))
    else:
        main()
