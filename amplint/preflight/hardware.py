"""The machine: its GPUs and its torch, and what is wrong between them."""

from __future__ import annotations

import os
from dataclasses import field
from typing import TYPE_CHECKING

from amplint.finding import Severity
from amplint.frozen import dataclass
from amplint.preflight.gpus import BF16_AND_TF32, FP8, TENSOR_CORES, Gpu, find_gpu, model_of
from amplint.preflight.nvidia_smi import Listing, list_gpus
from amplint.preflight.problem import Evidence, Problem, of_machine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.preflight.interpreter import Interpreter, TorchBuild, TorchGpu

VARIABLES = ("CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
"""Environment variables that decide which GPU a number means."""

_CUDA_VARIABLES = "https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html"
_GET_STARTED = "https://pytorch.org/get-started/locally/"
_CHECK_CUBINS = "https://github.com/pytorch/pytorch/blob/main/torch/cuda/__init__.py"


@dataclass(slots=True)
class Machine:
    """What is judged against. ``source`` says where the GPUs come from: torch, nvidia-smi, --gpu, or None."""

    interpreter: Interpreter
    gpus: tuple[Gpu, ...] = ()
    source: str | None = None
    listing: Listing | None = None
    environment: dict[str, str] = field(default_factory=dict)
    unseen: list[str] = field(default_factory=list)

    @property
    def torch(self) -> TorchBuild | None:
        return self.interpreter.torch

    @property
    def driver(self) -> str | None:
        return self.listing.driver if self.listing is not None else None


def see_machine(interpreter: Interpreter, names: Sequence[str] = ()) -> Machine:
    """The GPUs named, else those that torch sees, else those that nvidia-smi lists. Raises UsageError for a name."""
    named = tuple(find_gpu(name) for name in names)
    machine = Machine(interpreter, environment={name: os.environ[name] for name in VARIABLES if name in os.environ})
    machine.unseen.extend(interpreter.unseen)
    if named:
        machine.gpus, machine.source = named, "--gpu"
        return machine
    machine.listing = list_gpus()
    torch = interpreter.torch
    if torch is not None and torch.gpus:
        machine.gpus, machine.source = tuple(_from_torch(gpu, torch) for gpu in torch.gpus), "torch"
    elif machine.listing is not None and machine.listing.gpus:
        machine.gpus, machine.source = visible(machine.listing.gpus, machine.environment), "nvidia-smi"
        if not machine.gpus:
            machine.unseen.append(
                f"CUDA_VISIBLE_DEVICES={machine.environment['CUDA_VISIBLE_DEVICES']!r} hides all GPUs"
            )
    if machine.listing is not None and machine.listing.unseen is not None:
        machine.unseen.append(machine.listing.unseen)
    if not machine.gpus and not (torch is not None and torch.accelerators):
        where = "by torch" if torch is not None else "without torch"
        missing = " and there is no nvidia-smi" if machine.listing is None else ""
        machine.unseen.append(f"no GPU was seen {where}{missing}: name the one that the run will have with --gpu")
    return machine


def _from_torch(gpu: TorchGpu, torch: TorchBuild) -> Gpu:
    model = model_of(gpu.name)
    gfx = gpu.gfx.split(":")[0] if gpu.gfx and torch.hip else None
    return Gpu(
        name=gpu.name,
        vendor="amd" if torch.hip else "nvidia",
        capability=gpu.capability,
        architecture=gfx or (model.architecture if model is not None else None),
        has_tensor_cores=model is None or model.has_tensor_cores,
        index=gpu.index,
        uuid=gpu.uuid,
    )


def visible(gpus: Sequence[Gpu], environment: dict[str, str]) -> tuple[Gpu, ...]:
    """The GPUs that CUDA_VISIBLE_DEVICES lets through, its numbers read as nvidia-smi's."""
    value = environment.get("CUDA_VISIBLE_DEVICES")
    if value is None:
        return tuple(gpus)
    chosen = []
    for part in (part.strip() for part in value.split(",")):
        match = [gpu for gpu in gpus if _is_named(gpu, part)]
        if len(match) != 1:
            break
        chosen.extend(match)
    return tuple(chosen)


def _is_named(gpu: Gpu, part: str) -> bool:
    if part.isdigit():
        return gpu.index == int(part)
    return part.startswith("GPU-") and gpu.uuid is not None and gpu.uuid.startswith(part)


def judge_hardware(machine: Machine) -> Iterator[Problem]:
    """What is wrong with the machine itself, whatever runs on it."""
    torch = machine.torch
    if machine.source != "--gpu":
        yield from _order(machine)
        yield from _mixed(machine.gpus)
        if torch is not None:
            yield from _unused_gpu(machine, torch)
    if torch is not None:
        yield from _architectures(machine.gpus, torch)


def _order(machine: Machine) -> Iterator[Problem]:
    """CUDA counts the fastest GPU first unless told to go by PCI bus as nvidia-smi does."""
    listed = machine.listing.gpus if machine.listing is not None else ()
    names = {gpu.name for gpu in listed}
    if len(names) < 2 or machine.environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID":
        return
    value = machine.environment.get("CUDA_VISIBLE_DEVICES")
    if value is not None and not any(part.strip().isdigit() for part in value.split(",")):
        return
    expected = visible(listed, machine.environment)
    seen = [gpu.name for gpu in machine.gpus] if machine.source == "torch" else None
    if seen == [gpu.name for gpu in expected]:
        return
    subject = f"CUDA_VISIBLE_DEVICES={value}" if value is not None else "cuda:0"
    by_bus = ", ".join(f"{gpu.index}: {gpu.name}" for gpu in listed)
    if seen is not None:
        outcome = f"torch sees {', '.join(f'cuda:{index}: {name}' for index, name in enumerate(seen)) or 'none'}"
    else:
        outcome = f"{subject} may be another GPU than the one with that number there"
    yield Problem(
        "gpu-order",
        Severity.WARNING,
        "GPUs of different models and CUDA_DEVICE_ORDER is not PCI_BUS_ID: CUDA puts the fastest first, nvidia-smi "
        f"lists by PCI bus ({by_bus}); {outcome}",
        None,
        "export CUDA_DEVICE_ORDER=PCI_BUS_ID, or name GPUs by UUID in CUDA_VISIBLE_DEVICES (nvidia-smi -L)",
        (_CUDA_VARIABLES,),
        Evidence.SEEN if seen is not None else Evidence.CITED,
    )


_THRESHOLDS = (
    (TENSOR_CORES, "float16 tensor cores"),
    ((7, 5), "int8 tensor cores"),
    (BF16_AND_TF32, "bfloat16 and TF32"),
    (FP8, "float8"),
)
"""From which compute capability on a GPU has what. 7.5: ``supports_igemmlt`` of bitsandbytes 0.44.1."""


def _mixed(gpus: Sequence[Gpu]) -> Iterator[Problem]:
    """Visible GPUs of which only some have a dtype's arithmetic."""
    known = [(gpu, gpu.capability) for gpu in gpus if gpu.capability is not None]
    split = [what for first, what in _THRESHOLDS if len({capability >= first for _, capability in known}) > 1]
    if split:
        models = dict.fromkeys(str(gpu) for gpu, _ in known)
        yield Problem(
            "mixed-gpus",
            Severity.WARNING,
            f"only some of the visible GPUs have {', '.join(split)}: {', '.join(models)}; what is spread over them "
            '(device_map="auto", DataParallel, several ranks) computes differently on each',
            None,
            "leave GPUs of one model visible with CUDA_VISIBLE_DEVICES, or choose a precision that all of them have",
            ("https://developer.nvidia.com/cuda-gpus",),
            Evidence.SEEN,
        )


def _unused_gpu(machine: Machine, torch: TorchBuild) -> Iterator[Problem]:
    """A GPU that the driver lists and torch cannot use."""
    listed = visible(machine.listing.gpus, machine.environment) if machine.listing is not None else ()
    if not listed or torch.gpus or torch.hip or torch.available is None:
        return
    if torch.cuda is None:
        yield of_machine(
            "torch-without-cuda",
            f"torch {torch.version} is a CPU build, and this machine has {_names(listed)}: nothing runs on a GPU",
            f"install a CUDA build of torch ({_GET_STARTED})",
            _GET_STARTED,
        )
        return
    reason = f" ({torch.why_not})" if torch.why_not else ""
    driver = f" of driver {machine.driver}" if machine.driver else ""
    yield of_machine(
        "cuda-unavailable",
        f"torch {torch.version}, built for CUDA {torch.cuda}, cannot use {_names(listed)}{driver}{reason}",
        f"update the driver, or install a torch built for an older CUDA ({_GET_STARTED})",
        _GET_STARTED,
    )


def _architectures(gpus: Sequence[Gpu], torch: TorchBuild) -> Iterator[Problem]:
    """GPUs for which this torch holds no code."""
    if torch.cuda is None or not torch.arch_list:
        return
    for gpu in dict.fromkeys(gpu for gpu in gpus if gpu.capability is not None):
        assert gpu.capability is not None
        if any(_runs_on(arch, gpu.capability) for arch in torch.arch_list):
            continue
        yield of_machine(
            "torch-lacks-architecture",
            f"torch {torch.version} holds no code for {gpu}: it was built for {' '.join(torch.arch_list)}",
            f"install a build of torch for that GPU ({_GET_STARTED})",
            _CHECK_CUBINS,
        )


def _runs_on(arch: str, capability: tuple[int, int]) -> bool:
    """Machine code (sm_) runs within its major version, PTX (compute_) on everything later; ``a`` only on its own."""
    kind, _, number = arch.partition("_")
    digits = number.rstrip("af")
    if not digits.isdigit():
        return True
    version = divmod(int(digits), 10)
    if number.endswith("a"):
        return version == capability
    if kind == "compute":
        return version <= capability
    return version[0] == capability[0] and version <= capability


def _names(gpus: Sequence[Gpu]) -> str:
    return ", ".join(dict.fromkeys(gpu.name for gpu in gpus))
