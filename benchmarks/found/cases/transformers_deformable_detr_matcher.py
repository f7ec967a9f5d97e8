"""Costs of boxes by cdist, which has no kernel for 16 bit."""

import torch
from found.case import Case


def build():
    from transformers.loss.loss_deformable_detr import DeformableDetrHungarianMatcher

    matcher = DeformableDetrHungarianMatcher(class_cost=1, bbox_cost=1, giou_cost=1)

    def cost(logits, boxes, target):
        labels = torch.zeros(1, dtype=torch.long)
        matcher({"logits": logits, "pred_boxes": boxes}, [{"class_labels": labels, "boxes": target}])
        return boxes

    return cost, (torch.randn(1, 2, 3), torch.rand(1, 2, 4), torch.rand(1, 4)), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/loss/loss_deformable_detr.py",
    line=48,
    code="AMP305",
    scenario="bf16",
    error="not implemented for",
    breaks="Deformable DETR and the models that share its loss cannot be trained in half precision.",
    build=build,
    mode="eval-no-grad",
)
