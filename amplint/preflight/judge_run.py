"""Settings of one run that do not go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.files import display_path
from amplint.preflight.call import Call, Variable
from amplint.preflight.document import UNKNOWN
from amplint.preflight.frameworks import (
    ACCELERATOR,
    AUTOCASTS,
    DEEPSPEED,
    LIGHTNING,
    SCALERS,
    TRAINING_ARGUMENTS,
    Use,
    autocast_dtype,
    device_of,
    dtype_key,
    dtype_of,
    is_from_pretrained,
    uses,
)
from amplint.preflight.judge import flash_attention_dtype
from amplint.preflight.problem import Problem, cited

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.preflight.python_settings import PythonFile
    from amplint.preflight.settings import SettingsFile

_TROUBLESHOOTING = "https://huggingface.co/docs/peft/developer_guides/troubleshooting"
_TRAINING_ARGUMENTS = "https://github.com/huggingface/transformers/blob/main/src/transformers/training_args.py"
_HF_DEEPSPEED = "https://github.com/huggingface/transformers/blob/main/src/transformers/integrations/deepspeed.py"
_DATACLASSES = "https://github.com/huggingface/accelerate/blob/main/src/accelerate/utils/dataclasses.py"
_SCALER = "https://github.com/Lightning-AI/pytorch-lightning/blob/master/src/lightning/pytorch/plugins/precision/amp.py"

_FRAMEWORKS = (TRAINING_ARGUMENTS, ACCELERATOR, DEEPSPEED, *sorted(LIGHTNING))
_HARMLESS = (
    *(".config", ".train()", ".eval()", ".cuda()", ".dtype", ".device", ".print_trainable_parameters()", ".generate()"),
    *(".resize_token_embeddings()", ".gradient_checkpointing_enable()", ".gradient_checkpointing_disable()"),
    *(".save_pretrained()", ".push_to_hub()", ".get_input_embeddings()", ".enable_input_require_grads()", "()"),
)
"""Uses of a model that change neither its dtype nor which parameters are trained."""


def judge_run(run: Sequence[SettingsFile]) -> Iterator[Problem]:
    """Problems between the calls of the files of one run."""
    calls = [call for file in run for call in file.calls]
    yield from _disagreement(calls)
    yield from flash_attention_dtype(calls)
    for file in run:
        if file.python is not None:
            yield from _scaler_with_bf16(file.python.calls)
            yield from _scaled_half(file.python)


def _disagreement(calls: Sequence[Call]) -> Iterator[Problem]:
    """Two places of one run that set different 16 bit types; of each kind at most one, and for certain.

    Lightning is compared with DeepSpeed only: nothing joins it to the others.
    """
    found = [use for name in _FRAMEWORKS for document in (False, True) if (use := _only_use(calls, name, document))]
    for index, use in enumerate(found):
        for earlier in found[:index]:
            names = {earlier.call.name, use.call.name}
            joined = not names & LIGHTNING or DEEPSPEED in names
            if joined and use.precision != earlier.precision:
                yield _mismatch(earlier, use)
                break


def _only_use(calls: Sequence[Call], name: str, document: bool) -> Use | None:
    of_kind = [call for call in calls if call.name == name and call.in_document is document]
    if len(of_kind) != 1 or of_kind[0].conditional:
        return None
    settings = [use for use in uses(of_kind[0]) if use.precision in ("fp16-mixed", "bf16-mixed")]
    return settings[0] if len(settings) == 1 else None


def _mismatch(one: Use, other: Use) -> Problem:
    names = {one.call.name, other.call.name}
    if DEEPSPEED in names:
        outcome = "DeepSpeed's section has to match, and it raises where the framework compares them"
        remedy = 'write "auto" for fp16.enabled and bf16.enabled in the DeepSpeed configuration, or make them equal'
        source = _HF_DEEPSPEED if TRAINING_ARGUMENTS in names else _DATACLASSES
    else:
        outcome = "what stands in the script overrides the configuration"
        remedy = "write the same precision in both, or in one only"
        source = _TRAINING_ARGUMENTS
    there = one.call.at(one.key)
    return cited(
        "precision-disagreement",
        f"{other.call.spelled(other.key)} here, but {one.call.spelled(one.key)} in "
        f"{display_path(there.path)}:{there.row}:{there.column}: {outcome}",
        other.call.at(other.key),
        remedy,
        source,
    )


def _scaler_with_bf16(calls: Sequence[Call]) -> Iterator[Problem]:
    """A GradScaler that is certainly on in a file all of whose autocast regions are bfloat16."""
    regions = [call for call in calls if call.name in AUTOCASTS and call.get("enabled") is not False]
    if not regions or any(call.conditional or autocast_dtype(call) != "bfloat16" for call in regions):
        return
    for call in calls:
        if call.name in SCALERS and call.get("enabled") in (None, True) and not call.conditional and call.complete:
            yield cited(
                "scaler-with-bf16",
                f"{call.spelled()} in a script whose autocast is bfloat16: bfloat16 has float32's range and needs no "
                "loss scaling",
                call.place,
                "leave the GradScaler out, or construct it with enabled=False",
                _SCALER,
            )


def _scaled_half(file: PythonFile) -> Iterator[Problem]:
    """A model loaded in float16 that a Trainer with fp16=True trains. DeepSpeed and FSDP scale in their own ways."""
    by_variable = {call.bound_to: call for call in file.calls if call.bound_to is not None}
    for trainer in file.calls:
        if trainer.name != "transformers.Trainer" or trainer.get("peft_config") is not None or trainer.conditional:
            continue
        model, arguments = (_call_of(trainer, key, by_variable) for key in ("model", "args"))
        if model is None or arguments is None or not is_from_pretrained(model) or model.conditional:
            continue
        if arguments.name != TRAINING_ARGUMENTS or not arguments.is_true("fp16") or device_of(arguments) == "cpu":
            continue
        if arguments.get("deepspeed") is not None or arguments.get("fsdp") is not None:
            continue
        key = dtype_key(model)
        if dtype_of(model.get(key)) != "float16" or not model.complete or _is_quantized(model):
            continue
        if all(_is_harmless(use) for use in file.uses.get(model.bound_to or "", ())):
            yield cited(
                "scaled-half-parameters",
                f"{model.spelled(key)} is trained with {arguments.spelled('fp16')}: gradients of float16 parameters "
                'cannot be unscaled ("Attempting to unscale FP16 gradients")',
                model.at(key),
                "load the weights in torch.float32: fp16=True casts what is worth casting",
                _TROUBLESHOOTING,
            )


def _call_of(trainer: Call, key: str, by_variable: dict[str, Call]) -> Call | None:
    value = trainer.values.get(key)
    return by_variable.get(value.value.name) if value is not None and isinstance(value.value, Variable) else None


def _is_quantized(model: Call) -> bool:
    keys = ("quantization_config", "load_in_8bit", "load_in_4bit")
    return any(model.get(key) not in (None, False) for key in keys) or model.get("device_map") is UNKNOWN


def _is_harmless(use: str) -> bool:
    return use in _HARMLESS or use.startswith("transformers.Trainer(model")
