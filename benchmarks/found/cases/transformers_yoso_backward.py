"""Backward runs without autocast and multiplies a bfloat16 gradient with the float32 expectation."""

import torch
from found.case import Case


def build():
    from transformers.models.yoso.modeling_yoso import YosoCumulation, normalize

    class Cumulation(torch.nn.Module):
        """The function as the attention calls it: the value comes from a layer."""

        def __init__(self):
            super().__init__()
            self.value = torch.nn.Linear(8, 8)

        def forward(self, query, key, value):
            mask = torch.ones(query.shape[:2])
            return YosoCumulation.apply(mask, mask, *normalize([query, key]), self.value(value), {"hash_code_len": 3})

    return Cumulation(), tuple(torch.randn(1, 4, 8) for _ in range(3)), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/yoso/modeling_yoso.py",
    line=130,
    code="AMP204",
    scenario="autocast-bf16",
    error="scalar type",
    breaks="YOSO's expectation cannot be trained under autocast.",
    build=build,
)
