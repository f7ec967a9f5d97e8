"""The input is made float32, the adapter that it goes into is half."""

import torch
from found.case import Case


def build():
    from peft import AdaLoraConfig
    from peft.tuners.adalora.gptq import SVDQuantLinear

    config = AdaLoraConfig(total_step=10, init_r=2, target_r=1)
    return SVDQuantLinear(torch.nn.Linear(4, 4), "default", config, r=2), (torch.randn(2, 4),), {}


CASE = Case(
    package="peft",
    release="0.21.2",
    path="peft/tuners/adalora/gptq.py",
    line=60,
    code="AMP102",
    scenario="bf16",
    error="dtype",
    breaks="AdaLoRA over a GPTQ layer cannot run with adapters in half precision.",
    build=build,
    imports=("peft",),
    mode="eval-no-grad",
)
