"""The scores are made like the float32 input, what is written to them is in the autocast dtype."""

from found.case import Case


def build():
    import torch
    from peft.tuners.lora.arrow import ArrowLoraLinearLayer
    from peft.tuners.lora.config import ArrowConfig

    names = ["task_0", "task_1"]
    config = ArrowConfig(top_k=1)
    config.task_adapter_names = names
    layer = ArrowLoraLinearLayer(4, config)
    down = torch.nn.ModuleDict({name: torch.nn.Linear(4, 2, bias=False) for name in names})
    up = torch.nn.ModuleDict({name: torch.nn.Linear(2, 4, bias=False) for name in names})
    layer.register_buffer("prototypes", torch.randn(2, 4))
    return layer, (torch.randn(1, 3, 4), down, up, torch.nn.Identity(), dict.fromkeys(names, 1.0)), {}


CASE = Case(
    package="peft",
    release="0.21.2",
    path="peft/tuners/lora/arrow.py",
    line=253,
    code="AMP105",
    scenario="autocast-bf16",
    error="scatter",
    breaks="Arrow routing over LoRA adapters fails under autocast.",
    build=build,
    mode="eval-no-grad",
    imports=("peft",),
)
