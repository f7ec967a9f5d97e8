"""float16 convolutions go backward in float32 while that is asked for, and everything else as torch does it."""

from __future__ import annotations

import pytest
import torch

from amplint.verify import half_convolutions as module
from amplint.verify.half_convolutions import half_convolutions


def gradients(dtype: torch.dtype) -> list[torch.Tensor]:
    torch.manual_seed(0)
    layer = torch.nn.Conv2d(8, 8, 3).to(dtype)
    x = torch.randn(2, 8, 9, 9).to(dtype).requires_grad_()
    layer(x).float().pow(2).sum().backward()
    return [tensor.grad for tensor in (x, layer.weight, layer.bias) if tensor.grad is not None]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[torch.dtype]:
    """The dtypes in which torch's own kernel is asked to calculate."""
    dtypes: list[torch.dtype] = []
    own = module._torchs_own

    def noted(gradient: torch.Tensor, *arguments: object) -> object:
        dtypes.append(gradient.dtype)
        return own(gradient, *arguments)

    monkeypatch.setattr(module, "_torchs_own", noted)
    return dtypes


@pytest.mark.parametrize(
    ("dtype", "within"), [(torch.float16, torch.float32), (torch.bfloat16, torch.bfloat16), (torch.float32,) * 2]
)
def test_only_float16_is_widened(dtype: torch.dtype, within: torch.dtype, asked: list[torch.dtype]) -> None:
    expected = gradients(dtype)
    with half_convolutions():
        found = gradients(dtype)
    assert asked == [within]
    assert [tensor.dtype for tensor in found] == [dtype] * 3
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=4 * torch.finfo(dtype).eps, atol=1e-2)


def test_it_ends(asked: list[torch.dtype]) -> None:
    with pytest.raises(RuntimeError, match="stop"), half_convolutions():
        raise RuntimeError("stop")
    gradients(torch.float16)
    assert asked == []
