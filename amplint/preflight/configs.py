"""Data files that stand for a framework's call: which one, and its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.preflight.call import Call, Value
from amplint.preflight.document import UNKNOWN, Mapping, Node
from amplint.preflight.frameworks import (
    ACCELERATOR,
    DEEPSPEED,
    FABRIC,
    LIGHTNING_TRAINER,
    TRAINING_ARGUMENTS,
    canonical,
)
from amplint.preflight.problem import Place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOKENS = ("fp16", "bf16", "bfloat16", "tf32", "precision")
"""Strings of which a data file has one if it decides precision; others are not parsed."""

_TRAINING_FLAGS = {"fp16", "bf16", "tf32", "fp16_full_eval", "bf16_full_eval"}
_TRAINING_KEYS = {
    *("output_dir", "per_device_train_batch_size", "per_device_eval_batch_size", "gradient_accumulation_steps"),
    *("num_train_epochs", "lr_scheduler_type", "warmup_ratio", "warmup_steps", "logging_steps", "save_steps"),
}
_TRAINER_KEYS = {
    *("accelerator", "devices", "gpus", "max_epochs", "max_steps", "strategy", "num_nodes", "callbacks", "logger"),
    *("accumulate_grad_batches", "gradient_clip_val", "log_every_n_steps", "val_check_interval", "limit_val_batches"),
}
_ACCELERATE_KEYS = {
    *("compute_environment", "distributed_type", "num_processes", "num_machines", "machine_rank", "deepspeed_config"),
    *("fsdp_config", "main_training_function"),
}
_DEEPSPEED_KEYS = {
    *("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "zero_optimization"),
    *("optimizer", "scheduler", "gradient_clipping", "steps_per_print", "wall_clock_breakdown"),
    "zero_allow_untested_optimizer",
}


def calls_of_document(root: Node, path: Path) -> Iterator[Call]:
    """The calls that a document stands for, at its top or below.

    A mapping is taken for a framework's only when it has keys of that framework besides those that decide precision.
    """
    for node in root.walk():
        if isinstance(node.value, Mapping):
            yield from _calls(node, node.value, path, top=node is root)


def _calls(node: Node, mapping: Mapping, path: Path, *, top: bool) -> Iterator[Call]:
    keys = mapping.keys()
    target = mapping.get("_target_")
    kind = canonical([target.value]) if target is not None and isinstance(target.value, str) else None
    if keys & _ACCELERATE_KEYS and "mixed_precision" in keys:
        yield _call(ACCELERATOR, node, mapping, path)
    elif keys & {"fp16", "bf16", "bfloat16", "amp"} and keys & _DEEPSPEED_KEYS and _has_sections(mapping):
        yield deepspeed_call(node, path)
    elif kind == TRAINING_ARGUMENTS or (keys & _TRAINING_FLAGS and keys & _TRAINING_KEYS):
        yield _call(TRAINING_ARGUMENTS, node, mapping, path)
    elif kind in (LIGHTNING_TRAINER, FABRIC):
        yield _call(kind, node, mapping, path)
    elif top:
        trainer = mapping.get("trainer")
        below = trainer.value if trainer is not None else None
        if trainer is None or not isinstance(below, Mapping) or below.get("_target_") is not None:
            return
        if below.get("precision") is not None and below.keys() & _TRAINER_KEYS:
            yield _call(LIGHTNING_TRAINER, trainer, below, path)


def _has_sections(mapping: Mapping) -> bool:
    """Whether fp16 or bf16 is a section with ``enabled``, as only DeepSpeed has it."""
    sections = (mapping.get(key) for key in ("fp16", "bf16", "bfloat16", "amp"))
    return any(node is not None and isinstance(node.value, Mapping) and node.find("enabled") for node in sections)


def deepspeed_call(node: Node, path: Path) -> Call:
    """A DeepSpeed configuration, with arguments such as ``fp16.enabled``; ``bfloat16`` is an old name of ``bf16``."""
    values = {}
    for key, names in {"fp16": ("fp16",), "bf16": ("bf16", "bfloat16"), "amp": ("amp",)}.items():
        found = next((enabled for name in names if (enabled := node.find(name, "enabled")) is not None), None)
        if found is not None:
            value = UNKNOWN if found.value == "auto" else found.value
            values[f"{key}.enabled"] = Value(value, _place(path, found), f"{key}.enabled: {_shown(found.value)}")
    return Call(DEEPSPEED, "{}", _place(path, node), values, in_document=True)


def _call(name: str, node: Node, mapping: Mapping, path: Path) -> Call:
    values = {}
    for key, _, found in mapping.items:
        value = UNKNOWN if found.value == "auto" and name == TRAINING_ARGUMENTS else found.value
        values[key] = Value(value, _place(path, found), f"{key}: {_shown(found.value)}")
    if name == ACCELERATOR:
        file = node.find("deepspeed_config", "deepspeed_config_file")
        if file is not None:
            values["deepspeed"] = Value(file.value, _place(path, file), "deepspeed_config_file")
    return Call(name, "{}", _place(path, node), values, in_document=True)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "…" if isinstance(value, Mapping | tuple) or value is UNKNOWN else str(value)


def _place(path: Path, node: Node) -> Place:
    return Place(path, node.row, node.column)
