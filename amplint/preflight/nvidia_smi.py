"""What the NVIDIA driver's ``nvidia-smi`` lists: every GPU of the machine, in PCI bus order."""

from __future__ import annotations

import csv
import shutil
import subprocess
from contextlib import suppress

from amplint.frozen import dataclass
from amplint.preflight.gpus import Gpu, model_of, parse_capability

SECONDS = 20.0
_FIELDS = ("index", "name", "uuid", "driver_version")


@dataclass(frozen=True, slots=True)
class Listing:
    """GPUs in PCI bus order, the version of the driver, and what could not be seen."""

    gpus: tuple[Gpu, ...] = ()
    driver: str | None = None
    unseen: str | None = None


def list_gpus() -> Listing | None:
    """Ask ``nvidia-smi``; None where there is no such command on PATH.

    Drivers before 510 do not know the field ``compute_cap``; there the model's name tells the capability.
    """
    command = shutil.which("nvidia-smi")
    if command is None:
        return None
    try:
        rows = _query(command, (*_FIELDS, "compute_cap")) or _query(command, _FIELDS)
    except subprocess.TimeoutExpired:
        return Listing(unseen=f"nvidia-smi did not answer within {SECONDS:g} s")
    except OSError as error:
        return Listing(unseen=f"nvidia-smi could not be run: {error.strerror or error}")
    if not rows:
        return Listing(unseen="nvidia-smi lists no GPU")
    return Listing(tuple(_gpu(row) for row in rows), rows[0]["driver_version"])


def _query(command: str, fields: tuple[str, ...]) -> list[dict[str, str]]:
    """One row of fields for each GPU; nothing where nvidia-smi refuses or answers in another form."""
    done = subprocess.run(
        [command, f"--query-gpu={','.join(fields)}", "--format=csv,noheader"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=SECONDS,
        check=False,
    )
    if done.returncode:
        return []
    rows = [[cell.strip() for cell in row] for row in csv.reader(done.stdout.splitlines()) if row]
    return [dict(zip(fields, row, strict=True)) for row in rows if len(row) == len(fields) and row[0].isdigit()]


def _gpu(row: dict[str, str]) -> Gpu:
    model = model_of(row["name"])
    capability = model.capability if model is not None else None
    with suppress(ValueError):
        capability = parse_capability(row.get("compute_cap", ""))
    return Gpu(
        name=row["name"],
        vendor="nvidia",
        capability=capability,
        architecture=model.architecture if model is not None else None,
        has_tensor_cores=model is None or model.has_tensor_cores,
        index=int(row["index"]),
        uuid=row["uuid"],
    )
