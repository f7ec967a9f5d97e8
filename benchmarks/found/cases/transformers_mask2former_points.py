"""The points to sample the loss at are drawn in float32."""

import torch
from found.case import Case


def build():
    from transformers.models.mask2former.modeling_mask2former import Mask2FormerConfig, Mask2FormerLoss

    loss = Mask2FormerLoss(Mask2FormerConfig(num_labels=2, train_num_points=4), weight_dict={})

    def loss_masks(masks):
        first = torch.tensor([0])
        return loss.loss_masks(masks, [torch.ones(1, 8, 8)], [(first, first)], 1)["loss_mask"]

    return loss_masks, (torch.randn(1, 2, 4, 4),), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/mask2former/modeling_mask2former.py",
    line=270,
    code="AMP103",
    scenario="bf16",
    error="scalar type",
    breaks="Mask2Former in half precision cannot be trained.",
    build=build,
)
