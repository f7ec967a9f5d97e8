"""AMP402: a plain scaler beside a model that FSDP shards, and what two processes do with it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from amplint_rules.amp402_scaler_sequence import ScalerSequence
from rule_harness import findings

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")

TRAINING = """\
import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, fully_shard
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler


def train(model, x, shards):
    {wrap}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    {make}
    with torch.autocast("cpu", dtype=torch.float16):
        loss = model(x).float().mean()
    scaler.scale(loss).backward()
    model_gradients(model)
    scaler.step(optimizer)
    scaler.update()
    return scaler.get_scale()


def model_gradients(model):
    pass
"""
WRAP, PLAIN = 'model = FSDP(model, device_id=torch.device("cpu"))', 'scaler = torch.amp.GradScaler("cpu")'
SHARDED = 'scaler = ShardedGradScaler("cpu")'
PROCESSES = """
import os


def run(rank, meeting):
    torch.distributed.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=2)
    if rank == 0:
        global model_gradients
        def model_gradients(model):
            next(model.parameters()).grad[0] = float("inf")  # an overflow in the shard of one process
    scale = torch.tensor(train(torch.nn.Linear(4, 4), torch.ones(2, 4), True))
    scales = [torch.zeros(()), torch.zeros(())]
    torch.distributed.all_gather(scales, scale)
    if rank == 0:
        print(*(one.item() for one in scales), flush=True)
    torch.distributed.barrier()
    os._exit(0)  # without gloo's threads, which abort a process that tears down too soon


if __name__ == "__main__":
    import sys
    torch.multiprocessing.spawn(run, (sys.argv[1],), nprocs=2)
"""


def told(wrap: str = WRAP, make: str = PLAIN) -> bool:
    found = findings(ScalerSequence(), TRAINING.format(wrap=wrap, make=make))
    return any("by its own shard" in finding.message for finding in found)


def test_told_of_a_plain_scaler() -> None:
    assert told()
    assert told(wrap="model = FSDP(model) if shards else model")


OFFERED = """\


def wrapped(model):
    return FSDP(model)
"""


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (OFFERED, False),
        (OFFERED + "\n\ndef start(model, x):\n    train(wrapped(model), x, 2)\n", True),
        ("\n\nclass Trainer:\n" + OFFERED.replace("\n", "\n    ").rstrip() + "\n", True),
        ("\n\nwhole = FSDP(torch.nn.Linear(4, 4))\n", True),
    ],
)
def test_a_helper_that_nothing_calls_wraps_nothing(more: str, expected: bool) -> None:
    found = findings(ScalerSequence(), TRAINING.format(wrap="pass", make=PLAIN) + more)
    assert any("by its own shard" in finding.message for finding in found) is expected


@pytest.mark.parametrize(
    "parts",
    [
        {"make": SHARDED},
        {"make": f"{SHARDED} if shards else torch.amp.GradScaler('cpu')"},
        {"make": "scaler = torch.amp.GradScaler('cpu', enabled=False)"},
        {"wrap": "fully_shard(model)"},
        {"wrap": "if shards: return FSDP(model)(x).backward()"},
    ],
)
def test_not_told(parts: dict[str, str]) -> None:
    assert not told(**parts)


@pytest.mark.parametrize(("make", "agree"), [(PLAIN, False), (SHARDED, True)])
def test_two_processes(make: str, agree: bool, tmp_path: Path) -> None:
    program = tmp_path / "training.py"
    program.write_text(TRAINING.format(wrap=WRAP, make=make) + PROCESSES)
    run = [sys.executable, str(program), str(tmp_path / "meeting")]
    shown = subprocess.run(run, capture_output=True, text=True, timeout=300, check=False)
    assert shown.returncode == 0, shown.stderr
    scales = shown.stdout.split()
    assert len(scales) == 2
    assert (len(set(scales)) == 1) is agree
