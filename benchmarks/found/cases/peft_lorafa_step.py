"""The inverse is made with a float32 identity, and the gradient that it corrects is half."""

import torch
from found.case import Case


def build():
    from peft.optimizers import lorafa

    lorafa.is_bf16_available = lambda: False

    class Step(torch.nn.Module):
        """A step of the optimizer over one pair of adapters, on a GPU that has no bfloat16."""

        def __init__(self):
            super().__init__()
            self.down = torch.nn.Parameter(torch.randn(2, 4), requires_grad=False)
            self.up = torch.nn.Parameter(torch.randn(4, 2))

        def forward(self):
            self.up.grad = torch.ones_like(self.up)
            names = ["layer.lora_A.weight", "layer.lora_B.weight"]
            group = {"params": [self.down, self.up], "names": names, "scaling_factors": [1.0, 1.0]}
            lorafa.LoraFAOptimizer([group]).step()
            return self.up.detach().clone()

    return Step(), (), {}


CASE = Case(
    package="peft",
    release="0.21.2",
    path="peft/optimizers/lorafa.py",
    line=173,
    code="AMP103",
    scenario="fp16",
    error="dtype",
    breaks="LoRA-FA cannot train adapters in float16 on a GPU without bfloat16.",
    build=build,
    imports=("peft",),
    mode="eval-no-grad",
)
