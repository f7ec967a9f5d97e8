"""The input is made float32, the adapter that it goes into is half."""

import torch
from found.case import Case


def build():
    from peft import AdaLoraConfig
    from peft.tuners.adalora.bnb import SVDLinear8bitLt

    config = AdaLoraConfig(total_step=10, init_r=2, target_r=1)
    return SVDLinear8bitLt(torch.nn.Linear(4, 4), "default", config, r=2), (torch.randn(2, 4),), {}


CASE = Case(
    package="peft",
    release="0.21.2",
    path="peft/tuners/adalora/bnb.py",
    line=69,
    code="AMP102",
    scenario="bf16",
    error="dtype",
    breaks="AdaLoRA over an int8 layer cannot run with adapters in half precision.",
    build=build,
    imports=("peft",),
    mode="eval-no-grad",
)
