"""Backward runs without autocast and multiplies a bfloat16 gradient with the float32 value."""

import torch
from found.case import Case


def build():
    from transformers.models.yoso.modeling_yoso import YosoCumulation, normalize

    class Cumulation(torch.nn.Module):
        """The function as the attention calls it."""

        def forward(self, query, key, value):
            mask = torch.ones(query.shape[:2])
            return YosoCumulation.apply(mask, mask, *normalize([query, key]), value, {"hash_code_len": 3})

    return Cumulation(), tuple(torch.randn(1, 4, 8) for _ in range(3)), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/yoso/modeling_yoso.py",
    line=127,
    code="AMP204",
    scenario="autocast-bf16",
    error="scalar type",
    breaks="YOSO's expectation cannot be trained under autocast.",
    build=build,
)
