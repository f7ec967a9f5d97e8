"""The imagined device behind ``torch.cuda``, ``torch.mps`` and ``torch.xpu``: one, available, and always in step.

Answered: what there is and what it can do, waiting, and its random numbers, which are the CPU's.  Streams, events,
graphs and real memory raise the errors they raise without a device.
"""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from amplint.emulation.patches import Patches

_GIB = 1 << 30
_TENSOR_TYPES = ("Float", "Half", "BFloat16", "Double", "Long", "Int", "Short", "Char", "Byte", "Bool")


#: What optimisers ask before a step: whether a graph is being captured.
_IDLE = types.SimpleNamespace(is_capturing=lambda: False, synchronize=lambda: None)


def _nothing(*_args: Any, **_kwargs: Any) -> None:
    """Nothing to wait for, to choose, or to free."""


def _always(value: Any) -> Callable[..., Any]:
    return lambda *_args, **_kwargs: value


def _random_numbers() -> dict[str, Any]:
    generator = torch.default_generator

    def set_states(new_states: Sequence[torch.Tensor]) -> None:
        for state in new_states:
            generator.set_state(state)

    def manual_seed(seed: int) -> None:
        generator.manual_seed(int(seed))

    return {
        "get_rng_state": lambda device=None: generator.get_state(),
        "get_rng_state_all": lambda: [generator.get_state()],
        "set_rng_state": lambda new_state, device=None: set_states([new_state]),
        "set_rng_state_all": set_states,
        **dict.fromkeys(("manual_seed", "manual_seed_all"), manual_seed),
        **dict.fromkeys(("seed", "seed_all"), lambda: manual_seed(generator.seed())),
        "initial_seed": generator.initial_seed,
    }


def _common() -> dict[str, Any]:
    return {
        "is_available": _always(True),
        "device_count": _always(1),
        "current_device": _always(0),
        "set_device": _nothing,
        "synchronize": _nothing,
        "empty_cache": _nothing,
        **_random_numbers(),
    }


def _cuda(capability: tuple[int, int]) -> dict[str, Any]:
    major, minor = capability
    name = f"emulated GPU sm_{major}{minor}"
    properties = types.SimpleNamespace(
        name=name, major=major, minor=minor, total_memory=80 * _GIB, multi_processor_count=108, warp_size=32
    )
    return {
        **_common(),
        "_exchange_device": _always(0),
        "_maybe_exchange_device": _always(0),
        "get_device_capability": _always(capability),
        "get_device_name": _always(name),
        "get_device_properties": _always(properties),
        "is_bf16_supported": lambda including_emulation=True: major >= 8 or including_emulation,
        "is_tf32_supported": _always(major >= 8),
        "is_current_stream_capturing": _always(False),
        **{f"{kind}Tensor": getattr(torch, f"{kind}Tensor") for kind in _TENSOR_TYPES},
    }


def _replace(patches: Patches, module: Any, values: dict[str, Any]) -> None:
    """Replace what this release of torch has, each by an object of its own: torch._dynamo tells functions apart so."""
    for name, value in values.items():
        if hasattr(module, name):
            patches.set(module, name, value if isinstance(value, type) else functools.partial(value))


def _supply(patches: Patches, module: Any, values: dict[str, Any]) -> None:
    """Add what only torch built for the device has, and packages take for granted as soon as there is a device."""
    for name, value in values.items():
        if not hasattr(module, name):
            patches.set(module, name, value)


def patch(patches: Patches, device: str, capability: tuple[int, int]) -> None:
    """Answer for one imagined ``device``; ``capability`` is cuda's (8, 0 and up have bfloat16 units)."""
    if device == "cuda":
        _replace(patches, torch.cuda, _cuda(capability))
        _supply(patches, torch._C, {"_cuda_getCurrentRawStream": _always(0)})
        _replace(patches, torch.backends.cudnn, {"is_acceptable": _always(False)})  # would lay out weights for cuDNN
    elif device == "xpu":
        others = {"_exchange_device": _always(0), "_maybe_exchange_device": _always(0)}
        _replace(patches, torch.xpu, {**_common(), **others, "is_bf16_supported": _always(True)})
    else:
        _replace(patches, torch.mps, _common())
        true = _always(True)
        _replace(patches, torch.backends.mps, {"is_available": true, "is_built": true, "is_macos_or_newer": true})
    _replace(patches, torch._C, {"_get_accelerator": lambda check=False: torch.device(device)})
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None:
        _replace(
            patches,
            accelerator,
            {
                "is_available": _always(True),
                "current_accelerator": lambda check_available=False: torch.device(device),
                "device_count": _always(1),
                "current_device_index": _always(0),
                "current_device_idx": _always(0),
                "set_device_index": _nothing,
                "set_device_idx": _nothing,
                "synchronize": _nothing,
                "current_stream": _always(_IDLE),
            },
        )
