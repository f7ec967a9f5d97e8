"""Autocast regions and switches of an emulated device, and its cast policy."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import torch
import torch.nn.functional as F
from emulation_checks import BF16, DEVICE, FULL, HALF, check, layer, only, outside, raising, region, rows
from torch import nn
from torch.cuda.amp import autocast as cuda_autocast

from amplint.emulation import emulated, installed


@check
def regions_nest_and_are_switched_off() -> None:
    linear, x = layer(), rows()
    assert linear(x).dtype is FULL
    with region():
        assert linear(x).dtype is BF16
        assert F.softmax(linear(x), -1).dtype is FULL
        with region(enabled=False):
            assert linear(x).dtype is FULL
            assert not torch.is_autocast_enabled(DEVICE)
            with region(dtype=HALF):
                assert layer()(x).dtype is HALF
                with raising(RuntimeError, "dtype"):  # torch's cache of weights does not heed the dtype
                    linear(x)
            with raising(RuntimeError, "dtype"):
                linear(x.to(BF16))
        assert linear(x).dtype is BF16
        assert torch.is_autocast_enabled(DEVICE)
        assert torch.get_autocast_dtype(DEVICE) is BF16
    assert linear(x).dtype is FULL


@check
def an_exception_leaves_the_region() -> None:
    with raising(ZeroDivisionError, ""), region():
        raise ZeroDivisionError
    assert layer()(rows()).dtype is FULL


@check
def the_default_dtype_is_the_devices() -> None:
    with torch.autocast(device_type=DEVICE):
        assert layer()(rows()).dtype is HALF
    torch.set_autocast_dtype(DEVICE, BF16)
    with torch.amp.autocast(DEVICE):
        assert layer()(rows()).dtype is BF16


@check
def decorators_work() -> None:
    linear = layer()

    @torch.autocast(DEVICE)
    def plain(x: torch.Tensor) -> torch.Tensor:
        return linear(x)

    @torch.autocast(DEVICE, enabled=False)
    def off(x: torch.Tensor) -> torch.Tensor:
        return linear(x)

    assert plain(rows()).dtype is HALF
    with region():
        assert off(rows()).dtype is FULL


@check
def regions_of_the_cpu_do_nothing_to_the_devices_tensors() -> None:
    linear, x = layer(), rows()
    with torch.autocast("cpu", dtype=HALF):
        assert linear(x).dtype is FULL
        assert torch.is_autocast_enabled("cpu")
        assert torch.get_autocast_dtype("cpu") is HALF
        assert not torch.is_autocast_enabled(DEVICE)
    with region():
        assert not torch.is_autocast_enabled("cpu")
        with torch.autocast("cpu", enabled=False):
            assert linear(x).dtype is BF16


@only("cuda")
@check
def the_deprecated_class_works_though_imported_before() -> None:
    linear, x = layer(), rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with cuda_autocast() as one:
            assert linear(x).dtype is HALF
        with torch.cuda.amp.autocast(True, BF16):
            assert linear(x).dtype is BF16
        with torch.cuda.amp.autocast(enabled=False):
            assert linear(x).dtype is FULL
    assert isinstance(one if one is not None else cuda_autocast(), torch.autocast)


@check
def regions_warn_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with region(), torch.autocast(DEVICE):
            layer()(rows())


@check
def switches_by_hand_work() -> None:
    linear, x = layer(), rows()
    torch.set_autocast_enabled(DEVICE, True)
    assert linear(x).dtype is HALF
    torch.set_autocast_dtype(DEVICE, BF16)
    torch.clear_autocast_cache()
    assert linear(x).dtype is BF16
    torch.set_autocast_enabled(DEVICE, False)
    assert linear(x).dtype is FULL


@only("cuda")
@check
def the_old_switches_of_cuda_work() -> None:
    linear, x = layer(), rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.set_autocast_enabled(True)
        torch.set_autocast_gpu_dtype(BF16)
        assert torch.is_autocast_enabled()
        assert torch.get_autocast_gpu_dtype() is BF16
        assert not torch.is_autocast_cpu_enabled()
        assert linear(x).dtype is BF16
        torch.set_autocast_enabled(False)
        torch.set_autocast_cpu_enabled(True)
        torch.set_autocast_cpu_dtype(HALF)
        assert (torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype()) == (True, HALF)
        assert linear(x).dtype is FULL


@check
def only_cuda_is_meant_where_no_device_is_named() -> None:
    with region():
        assert torch.is_autocast_enabled() == (DEVICE == "cuda")


@check
def weights_are_cast_once_a_region() -> None:
    linear, x = layer(), rows()
    seen = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t.data_ptr()) or t, lambda t: t):
        for options in ({}, {"cache_enabled": False}):
            with region(**options):
                first, second = (linear(rows(requires_grad=True)) for _ in range(2))
            counted, seen = len(set(seen)), []
            (first + second).float().sum().backward()
            assert counted == (3 if not options else 4), (options, counted)
    with region():
        linear(x)
    with torch.no_grad():
        linear.weight.zero_()
        with region():
            assert linear(x).equal(linear.bias.to(BF16).expand(2, 4))


# ---- policy -----------------------------------------------------------------------------------------------------


@check
def in_place_and_out_forms_are_not_cast() -> None:
    x = rows(4, 4)
    with region():
        low = torch.mm(x, x)
        with raising(RuntimeError, "dtype"):
            rows(4, 4).addmm_(low, x)
        with raising(RuntimeError, ""):
            torch.mm(low, x, out=torch.empty(4, 4, device=DEVICE))
        with raising(RuntimeError, "dtype"):
            torch.zeros(4, 4, device=DEVICE)[torch.arange(4, device=DEVICE)] = low


@check
def other_dtypes_are_left_alone() -> None:
    x = rows(4, 4)
    with region():
        assert torch.mm(x.double(), x.double()).dtype is torch.float64
        with raising(RuntimeError, "dtype"):
            torch.mm(x.double(), x)
        assert torch.cumsum(x.to(torch.int32), 0).dtype is torch.int64
        assert torch.exp(x.to(torch.int32)).dtype is FULL
        with raising(RuntimeError, "prioritize"):
            torch.addcmul(x.half(), x.half(), x.half())


@only("cuda", "xpu")
@check
def cuda_and_xpu_ban_binary_cross_entropy_and_heed_dtype() -> None:
    x = rows().sigmoid()
    with region():
        with raising(RuntimeError, "unsafe to autocast"):
            F.binary_cross_entropy(x, x)
        assert torch.sum(x.to(BF16)).dtype is FULL
        assert torch.sum(x, dtype=BF16).dtype is BF16
        assert torch.norm(x.to(BF16), 2).dtype is FULL


@only("mps")
@check
def mps_has_its_own_list() -> None:
    with region():
        assert torch.exp(rows(dtype=BF16)).dtype is FULL
        assert F.interpolate(rows(1, 1, 4, 4, dtype=BF16), scale_factor=2).dtype is BF16
        assert F.binary_cross_entropy(rows().sigmoid(), rows().sigmoid()).dtype is FULL


@check
def recurrent_layers_run_as_on_the_device() -> None:
    lstm = nn.LSTM(4, 4).to(DEVICE)
    with region():
        assert lstm(rows(3, 2, 4))[0].dtype is (torch.float16 if DEVICE == "cuda" else FULL)


@only("cuda")
@check
def the_encoder_decides_as_on_cuda() -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, batch_first=True), 1).to(DEVICE).eval()
    padding = torch.tensor([[False] * 4, [False, False, True, True]], device=DEVICE)
    with torch.no_grad(), region():
        assert encoder(rows(2, 4, 16), src_key_padding_mask=padding).shape == (2, 4, 16)


# ---- before and after -------------------------------------------------------------------------------------------


def surroundings() -> dict[str, Any]:
    spaces = [torch, torch._C, torch.cuda, torch.xpu, torch.mps, torch.autograd, torch.autograd.graph, torch.Tensor]
    spaces += [torch.utils._device.DeviceContext, torch.autograd.graph.saved_tensors_hooks, torch.backends.mps]
    spaces += [torch.backends.cudnn, *filter(None, [getattr(torch, "accelerator", None)])]
    found = {f"{space}.{name}": id(value) for space in spaces for name, value in vars(space).items()}
    for device in ("cpu", "cuda", "xpu"):
        found[f"autocast of {device}"] = (torch.is_autocast_enabled(device), torch.get_autocast_dtype(device))
    found["modes"] = len(torch.overrides._get_current_function_mode_stack())
    return {key: value for key, value in found.items() if "_dynamo" not in key and "warning" not in key}


@outside
def everything_is_put_back() -> None:
    import torch._dynamo

    before = surroundings()
    with raising(KeyError, "left by an error"), emulated(DEVICE):
        torch.set_default_device(DEVICE)
        torch.set_autocast_enabled(DEVICE, True)
        torch.set_autocast_dtype(DEVICE, BF16)
        torch.autocast(DEVICE).__enter__()
        layer()(rows())
        raise KeyError("left by an error")
    torch.autocast_decrement_nesting()
    after = surroundings()
    assert {key for key in before if before[key] != after.get(key)} == set()
    assert torch.zeros(1).device.type == "cpu"
    assert not torch.Tensor([1.0]).is_cuda


@outside
def what_cannot_be_emulated_is_refused() -> None:
    with raising(ValueError, "use one of"), emulated("cpu"):
        pass
    with emulated(DEVICE):
        with raising(RuntimeError, "already"), emulated(DEVICE):
            pass
        assert torch.zeros(1).device.type == DEVICE
    assert installed() == DEVICE
    other = "xpu" if DEVICE != "xpu" else "cuda"
    with raising(RuntimeError, "another process"), emulated(other):
        pass


@check
def threads_begin_without_autocast() -> None:
    linear, x, seen = layer(), rows(), []
    with region():
        thread = threading.Thread(target=lambda: seen.append((linear(x).dtype, torch.is_autocast_enabled(DEVICE))))
        thread.start()
        thread.join()
    assert seen == [(FULL, False)]

    def own() -> None:
        with region():
            seen.append(linear(x).dtype)

    thread = threading.Thread(target=own)
    thread.start()
    thread.join()
    assert seen[1] is BF16
