"""The calls that decide precision: their names, their positional arguments, and what their arguments mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.preflight.call import Call, Dtype
from amplint.preflight.document import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TRAINING_ARGUMENTS = "transformers.TrainingArguments"
ACCELERATOR = "accelerate.Accelerator"
LIGHTNING_TRAINER = "lightning.pytorch.Trainer"
FABRIC = "lightning.fabric.Fabric"
DEEPSPEED = "deepspeed.config"
"""Stands for a DeepSpeed configuration, in a file or a dict: no call of that name exists."""
AUTOCAST, CUDA_AUTOCAST, CPU_AUTOCAST = "torch.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast"
SCALER, CUDA_SCALER = "torch.amp.GradScaler", "torch.cuda.amp.GradScaler"
BITSANDBYTES = "transformers.BitsAndBytesConfig"

AUTOCASTS = frozenset({AUTOCAST, CUDA_AUTOCAST, CPU_AUTOCAST})
SCALERS = frozenset({SCALER, CUDA_SCALER})
LIGHTNING = frozenset({LIGHTNING_TRAINER, FABRIC})

_SPELLINGS = {
    TRAINING_ARGUMENTS: (
        "transformers.Seq2SeqTrainingArguments transformers.training_args.TrainingArguments "
        "transformers.training_args_seq2seq.Seq2SeqTrainingArguments "
        "sentence_transformers.SentenceTransformerTrainingArguments "
        "sentence_transformers.training_args.SentenceTransformerTrainingArguments"
    ),
    ACCELERATOR: "accelerate.accelerator.Accelerator",
    LIGHTNING_TRAINER: (
        "lightning.Trainer lightning.pytorch.trainer.Trainer lightning.pytorch.trainer.trainer.Trainer "
        "pytorch_lightning.Trainer pytorch_lightning.trainer.Trainer pytorch_lightning.trainer.trainer.Trainer"
    ),
    FABRIC: ("lightning.Fabric lightning.fabric.fabric.Fabric lightning_fabric.Fabric lightning_fabric.fabric.Fabric"),
    AUTOCAST: "torch.amp.autocast torch.amp.autocast_mode.autocast",
    CUDA_AUTOCAST: "torch.cuda.amp.autocast_mode.autocast",
    CPU_AUTOCAST: "torch.cpu.amp.autocast_mode.autocast",
    SCALER: "torch.amp.grad_scaler.GradScaler",
    CUDA_SCALER: "torch.cuda.amp.grad_scaler.GradScaler",
    BITSANDBYTES: "transformers.utils.quantization_config.BitsAndBytesConfig",
    "transformers.Trainer": "transformers.trainer.Trainer transformers.Seq2SeqTrainer",
}
_ALIASES = {alias: name for name, aliases in _SPELLINGS.items() for alias in aliases.split()}
_TRL = (
    *("SFT", "DPO", "KTO", "Reward", "GRPO", "RLOO", "ORPO", "CPO"),
    *("GKD", "OnlineDPO", "PPO", "XPO", "NashMD", "BCO", "PRM"),
)
_ALIASES |= {f"trl.{name}Config": TRAINING_ARGUMENTS for name in _TRL}
_ALIASES |= {f"trl.{name}Trainer": "transformers.Trainer" for name in _TRL if name != "PPO"}
_KNOWN = frozenset(_ALIASES.values())

SCRIPT_TOKENS = tuple(sorted({name.rpartition(".")[2] for name in (*_ALIASES, *_KNOWN, *AUTOCASTS, *SCALERS)}))
"""Strings of which a script has one if it decides precision."""

_DISTRIBUTED = {name: name.lower() for name in ("CPU", "XPU", "NPU", "MLU", "SDAA", "MUSA", "HPU", "XLA", "NEURON")}
"""Accelerate's ``distributed_type``, after ``MULTI_``, of devices that are no GPUs."""

POSITIONAL = {
    AUTOCAST: ("device_type", "dtype", "enabled", "cache_enabled"),
    CUDA_AUTOCAST: ("enabled", "dtype", "cache_enabled"),
    CPU_AUTOCAST: ("enabled", "dtype", "cache_enabled"),
    SCALER: ("device", "init_scale", "growth_factor", "backoff_factor", "growth_interval", "enabled"),
    CUDA_SCALER: ("init_scale", "growth_factor", "backoff_factor", "growth_interval", "enabled"),
    "transformers.Trainer": ("model", "args"),
}
"""Parameters that are passed by position, in order."""

DTYPES = {
    **{name: name for name in ("float16", "bfloat16", "float32", "float64")},
    **{name: name for name in ("float8_e4m3fn", "float8_e5m2")},
    "half": "float16",
    "float": "float32",
    "double": "float64",
}
"""Torch's names of floating dtypes, with the one that amplint uses for each."""

LIGHTNING_PRECISIONS: dict[str | int, str] = {
    **dict.fromkeys((16, "16", "16-mixed"), "fp16-mixed"),
    **dict.fromkeys(("bf16", "bf16-mixed"), "bf16-mixed"),
    "16-true": "fp16",
    "bf16-true": "bf16",
    "transformer-engine": "fp8",
    "transformer-engine-float16": "fp8",
    **dict.fromkeys((32, "32", "32-true"), "fp32"),
    **dict.fromkeys((64, "64", "64-true"), "fp64"),
}
"""``precision=`` of Lightning's Trainer and Fabric, old and new spellings.

https://github.com/Lightning-AI/pytorch-lightning/blob/master/src/lightning/fabric/plugins/precision/precision.py
"""

ACCELERATE_PRECISIONS = {"no": "fp32", "fp16": "fp16-mixed", "bf16": "bf16-mixed", "fp8": "fp8"}
"""``mixed_precision=`` of Accelerate.

https://github.com/huggingface/accelerate/blob/main/src/accelerate/utils/dataclasses.py, ``PrecisionType``
"""


@dataclass(frozen=True, slots=True)
class Use:
    """That a run computes in some precision: ``fp16-mixed``, ``bf16-mixed``, ``fp16``, ``bf16``, ``fp8``, ``tf32``,
    ``fp32`` or ``fp64``, as the argument ``key`` of a call says."""

    precision: str
    call: Call
    key: str

    @property
    def family(self) -> str:
        """``fp16``, ``bf16``, …, whether mixed or not."""
        return self.precision.partition("-")[0]


def canonical(names: Sequence[str]) -> str:
    """One name for the same thing however it was imported; of several fallback imports a known one."""
    resolved = [_ALIASES.get(name, name) for name in names]
    return next((name for name in resolved if name in _KNOWN), resolved[0])


def is_from_pretrained(call: Call) -> bool:
    """Whether a call loads a model of transformers or diffusers."""
    return call.name.startswith(("transformers.", "diffusers.")) and call.name.endswith(".from_pretrained")


def dtype_of(value: object) -> str | None:
    """The dtype that an argument names, as torch spells it; None where it is none or unknown."""
    if isinstance(value, Dtype):
        return value.name
    return DTYPES.get(value.removeprefix("torch.")) if isinstance(value, str) else None


def dtype_key(call: Call) -> str:
    """Which of its two names ``from_pretrained`` got the dtype under."""
    return "dtype" if "dtype" in call.values else "torch_dtype"


def device_of(call: Call) -> str | None:
    """The device type that a call is for; None where it says nothing certain of it."""
    if call.name == CUDA_AUTOCAST or call.name == CUDA_SCALER:
        return "cuda"
    if call.name == CPU_AUTOCAST:
        return "cpu"
    if call.name == AUTOCAST:
        device = call.get("device_type")
        return device if isinstance(device, str) else None
    if call.name == TRAINING_ARGUMENTS:
        return "cpu" if call.is_true("use_cpu") or call.is_true("no_cuda") else None
    if call.name == ACCELERATOR:
        if call.is_true("cpu") or call.is_true("use_cpu"):
            return "cpu"
        kind = call.get("distributed_type")
        return _DISTRIBUTED.get(kind.removeprefix("MULTI_")) if isinstance(kind, str) else None
    if call.name in LIGHTNING:
        accelerator = call.get("accelerator")
        return {"gpu": "cuda", "auto": None}.get(accelerator, accelerator) if isinstance(accelerator, str) else None
    if is_from_pretrained(call) and call.get("device_map") == "cpu":
        return "cpu"
    return None


def on_a_gpu(call: Call) -> bool:
    """Whether a call is for CUDA or ROCm as far as the file says: it may not be for anything else."""
    device = device_of(call)
    if call.name == AUTOCAST:
        return device == "cuda"
    return device in (None, "cuda", "auto") and call.get("accelerator") is not UNKNOWN


def uses(call: Call) -> Iterator[Use]:
    """What a call says about precision, as far as it is certain."""
    if call.name == TRAINING_ARGUMENTS:
        flags = {"fp16": "fp16-mixed", "bf16": "bf16-mixed", "tf32": "tf32", "fp16_full_eval": "fp16"}
        for key, precision in {**flags, "bf16_full_eval": "bf16"}.items():
            if call.is_true(key):
                yield Use(precision, call, key)
    elif call.name == ACCELERATOR:
        mixed = accelerate_precision(call)
        if mixed is not None:
            yield Use(mixed, call, "mixed_precision")
    elif call.name in LIGHTNING:
        value = call.get("precision")
        if isinstance(value, str | int) and value in LIGHTNING_PRECISIONS:
            yield Use(LIGHTNING_PRECISIONS[value], call, "precision")
    elif call.name == DEEPSPEED:
        for key, precision in (("fp16.enabled", "fp16-mixed"), ("bf16.enabled", "bf16-mixed")):
            if call.is_true(key):
                yield Use(precision, call, key)
    elif call.name in AUTOCASTS:
        dtype = autocast_dtype(call)
        if dtype in ("float16", "bfloat16"):
            yield Use("fp16-mixed" if dtype == "float16" else "bf16-mixed", call, "dtype")
    elif call.name == BITSANDBYTES:
        yield from _dtype_use(call, "bnb_4bit_compute_dtype")
    elif is_from_pretrained(call):
        yield from _dtype_use(call, dtype_key(call))


def _dtype_use(call: Call, key: str) -> Iterator[Use]:
    names = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}
    dtype = dtype_of(call.get(key))
    if dtype in names:
        yield Use(names[dtype], call, key)


def accelerate_precision(call: Call) -> str | None:
    """What ``mixed_precision`` asks for; YAML reads an unquoted ``no`` as False."""
    value = call.get("mixed_precision")
    value = "no" if value is False else value
    return ACCELERATE_PRECISIONS.get(value) if isinstance(value, str) else None


def autocast_dtype(call: Call) -> str | None:
    """The dtype of an autocast region that is certainly on: the device's default where none is given."""
    if call.get("enabled") not in (None, True):
        return None
    if call.get("dtype") is not None:
        return dtype_of(call.get("dtype"))
    return {"cuda": "float16", "cpu": "bfloat16"}.get(device_of(call) or "")
