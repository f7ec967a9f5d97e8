"""What a communication hook of DistributedDataParallel gets: a bucket of gradients in the parameters' dtype."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplint.engine import Options, check_file
from amplint.plugins import load_rules, select_rules
from amplint.source import Source

SQUARES = "bucket.buffer().div_(8).pow(2).sum()"


def found(code: str) -> list[tuple[int, tuple[str, ...]]]:
    """(row, scenarios) of the findings of AMP303."""
    options = Options(select_rules(load_rules(), ("AMP303",), (), ()), torch_version=(2, 13))
    result = check_file(Source(Path("/project/hooks.py"), code.encode()), options)
    assert not result.failures
    return [(finding.span.start.row, finding.scenarios) for finding in result.findings]


@pytest.mark.parametrize(
    "code",
    [
        f"import torch.distributed as dist\n\n\ndef hook(state, bucket: dist.GradBucket):\n    return {SQUARES}\n",
        f"import torch\n\n\ndef hook(state, bucket):\n    return {SQUARES}\n\n\ndef install(model):\n"
        "    model.register_comm_hook(state=None, hook=hook)\n",
        f"import torch\n\n\ndef hook(state, bucket):\n    return {SQUARES}\n\n\ndef install(model):\n"
        "    model.register_comm_hook(None, hook)\n",
        "import torch\nfrom torch.distributed import GradBucket\n\n"
        "def hook(state, bucket: GradBucket):\n    return sum(g.div_(8).square().sum() for g in bucket.gradients())\n",
    ],
)
def test_a_bucket_holds_gradients(code: str) -> None:
    assert found(code) == [(5, ("fp16",))]


@pytest.mark.parametrize(
    "code",
    [
        f"import torch\n\n\ndef stats(state, bucket):\n    return {SQUARES}\n",
        "import torch\n\n\ndef hook(state, bucket):\n    return bucket.buffer().div_(8).float().pow(2).sum()\n\n\n"
        "def install(model):\n    model.register_comm_hook(None, hook)\n",
        "import torch\n\n\ndef hook(state, bucket):\n    return bucket.index(), bucket.is_last()\n\n\n"
        "def install(model):\n    model.register_comm_hook(None, hook)\n",
        "import torch\n\n\ndef hook(state, grad):\n    return grad.div_(8).sum()\n\n\n"
        "def install(model):\n    model.register_comm_hook(None, hook)\n",
    ],
)
def test_what_is_no_bucket_or_was_cast_is_left_alone(code: str) -> None:
    assert found(code) == []
