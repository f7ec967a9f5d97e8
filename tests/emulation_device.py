"""Where tensors say they are, ways there, and what the emulated device answers."""

from __future__ import annotations

import copy
import io
import warnings

import torch
from emulation_checks import BF16, DEVICE, HALF, check, layer, only, outside, raising, region, rows
from torch import nn

from amplint.emulation import emulated


@check
def tensors_say_that_they_are_on_the_device() -> None:
    here = torch.device(DEVICE, 0)
    x = rows()
    assert x.device == here
    assert x.get_device() == 0
    assert (getattr(x, f"is_{DEVICE}"), x.is_cpu) == (True, False)
    assert x.type() == f"torch.{DEVICE}.FloatTensor"
    assert torch.zeros(2, device=x.device).device == torch.zeros_like(x).device == x.new_zeros(2).device == here
    assert torch.empty(2, device="meta").device.type == "meta"
    assert x.to("meta").device.type == "meta"
    assert layer().weight.grad is None
    assert nn.Parameter(x).device == here
    assert torch.device(DEVICE).type == DEVICE


@check
def every_way_to_the_device_works() -> None:
    module, x = nn.Linear(4, 4), torch.randn(2, 4)
    where = [DEVICE, f"{DEVICE}:0", torch.device(DEVICE), torch.device(DEVICE, 0), x.device]
    for device in [*where, 0] if DEVICE == "cuda" else where:
        assert x.to(device, BF16).dtype is BF16
        assert x.to(device=device, dtype=HALF, non_blocking=True).dtype is HALF
        assert module.to(device)(x.to(device)).shape == (2, 4)
        assert torch.zeros(2, device=device).device == torch.device(DEVICE, 0)
        assert torch.tensor([1.0], device=device).device == x.device
        assert torch.empty_like(x, device=device).device == x.device
    if DEVICE != "mps":
        assert getattr(x, DEVICE)().device == x.device
        assert getattr(x, DEVICE)(0).device == x.device
        assert getattr(module, DEVICE)()(x).shape == (2, 4)
    assert x.to(rows(dtype=BF16)).dtype is BF16


@check
def what_goes_to_the_host_is_a_copy() -> None:
    x = rows()
    for host in (x.cpu(), x.to("cpu"), x.to(device=torch.device("cpu"))):
        x.add_(1)
        assert not host.equal(x)
    assert x.to(DEVICE) is x
    assert x.detach().cpu().numpy().shape == (2, 4)


@check
def default_devices_are_heeded() -> None:
    here = torch.device(DEVICE, 0)
    with torch.device(DEVICE):
        assert torch.zeros(2).device == nn.Linear(2, 2).weight.device == here
    torch.set_default_device(DEVICE)
    assert torch.arange(2).device == here
    torch.set_default_device(None)


@check
def random_numbers_belong_to_the_device() -> None:
    generator = torch.Generator(device=DEVICE)
    assert isinstance(generator, torch.Generator)
    assert generator.device == torch.device(DEVICE, 0)
    generator.manual_seed(1)
    first = rows(generator=generator)
    assert first.equal(rows(generator=generator.manual_seed(1)))
    module = getattr(torch, DEVICE)
    module.manual_seed(3)
    state = module.get_rng_state()
    first = rows()
    module.set_rng_state(state)
    assert first.equal(rows())
    with torch.random.fork_rng(devices=[0], device_type=DEVICE):
        rows()
    assert torch.Generator().device.type == "cpu"


@check
def the_device_is_there_and_idle() -> None:
    module = getattr(torch, DEVICE)
    assert module.is_available() if DEVICE != "mps" else torch.backends.mps.is_available()
    assert module.device_count() == 1
    module.synchronize()
    module.empty_cache()
    if DEVICE != "mps":
        assert module.current_device() == 0
        module.set_device(0)
        with module.device(0), module.device_of(rows()):
            pass
    if DEVICE == "cuda":
        assert torch._C._cuda_getCurrentRawStream(0) == 0, "what packages read as they are imported, if cuda is there"
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None:
        assert accelerator.is_available()
        assert accelerator.current_accelerator().type == DEVICE


@only("cuda")
@outside
def the_gpu_can_do_what_was_asked_for() -> None:
    for capability, bf16 in (((7, 5), False), ((9, 0), True)):
        with emulated(DEVICE, capability=capability):
            assert torch.cuda.get_device_capability() == capability
            properties = torch.cuda.get_device_properties(0)
            assert (properties.major, properties.minor) == capability
            assert torch.cuda.is_bf16_supported(including_emulation=False) is bf16
            assert torch.cuda.is_bf16_supported()
            assert torch.cuda.get_device_name() == properties.name
    with raising((RuntimeError, AssertionError), ""), emulated(DEVICE):
        torch.cuda.current_stream()


@only("cuda")
@check
def tensor_types_of_the_device_work() -> None:
    assert torch.cuda.FloatTensor([1.0]).device == torch.device("cuda", 0)
    assert rows().type("torch.cuda.HalfTensor").dtype is HALF
    assert rows().type(torch.cuda.DoubleTensor).dtype is torch.float64


@check
def modules_are_copied_and_saved() -> None:
    module, file = layer(), io.BytesIO()
    copied = copy.deepcopy(module)
    assert copied.weight.device == module.weight.device
    torch.save(module.state_dict(), file)
    file.seek(0)
    copied.load_state_dict(torch.load(file, weights_only=True))
    assert repr(rows()).startswith("tensor(")


def product_of_itself(x: torch.Tensor) -> torch.Tensor:
    return torch.mm(x, x)


def asking(x: torch.Tensor) -> bool:
    return torch.is_autocast_enabled()


@check
def scripted_code_is_cast() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.script(product_of_itself)
        with region():
            assert scripted(rows(4, 4)).dtype is BF16
        torch.jit.script(asking)
