"""Models of transformers by model type, as a whole and with the head it is trained with."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import torch
from transformers.models.auto import configuration_auto, modeling_auto

from amplint.verify.build import Recipe
from dtype_truth.libraries import Model, NotBuilt
from dtype_truth.libraries.inputs import Inputs, offers, with_image_tokens
from dtype_truth.libraries.shrink import ATTEMPTS, Shrinking, shrink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PREFERRED = (
    "MODEL_FOR_PRETRAINING", "MODEL_FOR_IMAGE_TEXT_TO_TEXT", "MODEL_FOR_SPEECH_SEQ_2_SEQ",
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM", "MODEL_FOR_CAUSAL_LM", "MODEL_FOR_MASKED_LM", "MODEL",
)  # fmt: skip
_LARGEST = 200_000_000
"""Parameters, above which a model is not built."""


def all_models() -> list[str]:
    """Every model type that has a model class."""
    return [name for name in modeling_auto.MODEL_MAPPING_NAMES if name in configuration_auto.CONFIG_MAPPING_NAMES]


def build(model_type: str) -> Model:
    """The first shrinking, class and inputs that run in full precision."""
    if model_type not in configuration_auto.CONFIG_MAPPING_NAMES:
        raise NotBuilt(f"transformers has no model type {model_type!r}")
    failures: list[str] = []
    for how, experts in itertools.product(ATTEMPTS, (None, "eager")):
        try:
            config = _config(model_type, how, experts)
            cls = _class(type(config))
            if how is not ATTEMPTS[0] and _parameters(cls, config) > _LARGEST:
                continue
            model = cls(config).eval()
        except Exception as error:
            failures.append(f"{how}: {_line(error)}")
            continue
        for offer in offers(model, config):
            inputs = _accepted(model, offer, failures)
            if inputs is not None:
                chosen = f", {experts} experts" if experts else ""
                recipe = Recipe(f"config of {model_type}", 0, _parts(cls, model_type, how, experts, inputs))
                return Model(recipe, cls, f"{cls.__name__} with {inputs}{chosen}")
    raise NotBuilt("; ".join(dict.fromkeys(failures)) or "too large")


def _accepted(model: Any, offer: Inputs, failures: list[str]) -> Inputs | None:
    """The inputs with which the model runs: those offered, or those with image tokens that fit; None if neither."""
    waiting = [offer]
    for inputs in waiting:
        try:
            with torch.no_grad():
                torch.manual_seed(0)
                model(**inputs.make())
            return inputs
        except Exception as error:
            failures.append(f"{inputs}: {_line(error)}")
            waiting.extend(with_image_tokens(inputs, error))
    return None


def _parts(cls: type, model_type: str, how: Shrinking, experts: str | None, inputs: Inputs) -> Callable[[], Any]:
    return lambda: (cls(_config(model_type, how, experts)), (), inputs.make())


def _config(model_type: str, how: Shrinking, experts: str | None) -> Any:
    """``experts``: how experts are computed where not as by default, whose kernels the emulated device may lack."""
    config = configuration_auto.AutoConfig.for_model(model_type)
    shrink(config, how)
    if experts is not None:
        config._experts_implementation = experts
    return config


def _class(config_class: type) -> Any:
    for mapping in _mappings():
        if config_class in mapping:
            found = mapping[config_class]
            return found[0] if isinstance(found, (tuple, list)) else found
    raise NotBuilt(f"no model class takes {config_class.__name__}")


def _mappings() -> Iterator[Any]:
    """The automatic mappings from configurations to classes, preferred ones first."""
    names = {name for name in vars(modeling_auto) if name.startswith("MODEL_FOR_") and name.endswith("_MAPPING")}
    first = [f"{name}_MAPPING" for name in _PREFERRED]
    for name in [*first, *sorted(names - set(first))]:
        yield getattr(modeling_auto, name)


def _parameters(cls: Any, config: Any) -> int:
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in cls(config).parameters())


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:160]}"
