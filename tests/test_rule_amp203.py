"""AMP203: the device that a decorator lacks, and where it can be written."""

from __future__ import annotations

import ast

import pytest
from amplint_rules.amp203_miswired_custom_fwd_bwd import MiswiredCustomFwdBwd
from rule_harness import findings, fixed

RULE = MiswiredCustomFwdBwd()
FUNCTION = """\
import torch


class Exp(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(FORWARD)
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y
"""


@pytest.mark.parametrize(
    ("given", "mended"),
    [
        ("", 'device_type="cuda"'),
        ('"cuda"', 'device_type="cuda"'),
        ("cast_inputs=torch.float32", 'cast_inputs=torch.float32, device_type="cuda"'),
        ('"cuda", cast_inputs=torch.float32', 'device_type="cuda", cast_inputs=torch.float32'),
    ],
)
def test_the_device_is_given_by_its_name(given: str, mended: str) -> None:
    assert fixed(RULE, FUNCTION.replace("FORWARD", given)) == FUNCTION.replace("FORWARD", mended)


@pytest.mark.parametrize("given", ['"cuda", torch.float32', '"cuda", *options'])
def test_no_keyword_is_put_before_what_goes_by_position(given: str) -> None:
    code = FUNCTION.replace("FORWARD", given)
    assert len(findings(RULE, code)) == 1
    after = fixed(RULE, code, unsafe=True)
    assert after == code
    ast.parse(after)
