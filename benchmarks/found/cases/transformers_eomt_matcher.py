"""The points to compare masks at are drawn in float32."""

import torch
from found.case import Case


def build():
    from transformers.models.eomt.modeling_eomt import EomtHungarianMatcher

    matcher = EomtHungarianMatcher(num_points=4)

    def match(masks, logits):
        matcher(masks, logits, [torch.ones(1, 4, 4)], [torch.tensor([0])])
        return masks

    return match, (torch.randn(1, 2, 4, 4), torch.randn(1, 2, 3)), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/eomt/modeling_eomt.py",
    line=118,
    code="AMP103",
    scenario="bf16",
    error="scalar type",
    breaks="EoMT in half precision cannot be trained.",
    build=build,
    mode="eval-no-grad",
)
