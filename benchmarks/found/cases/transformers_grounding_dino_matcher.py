"""Costs of boxes by cdist, which has no kernel for 16 bit."""

import torch
from found.case import Case


def build():
    from transformers.loss.loss_grounding_dino import GroundingDinoHungarianMatcher

    matcher = GroundingDinoHungarianMatcher(class_cost=1, bbox_cost=1, giou_cost=1)

    def cost(logits, boxes, target, names):
        outputs = {"logits": logits, "pred_boxes": boxes, "label_maps": [names]}
        matcher(outputs, [{"class_labels": torch.zeros(1, dtype=torch.long), "boxes": target}])
        return boxes

    return cost, (torch.randn(1, 2, 3), torch.rand(1, 2, 4), torch.rand(1, 4), torch.ones(1, 3)), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/loss/loss_grounding_dino.py",
    line=117,
    code="AMP305",
    scenario="bf16",
    error="not implemented for",
    breaks="Grounding DINO cannot be trained in half precision.",
    build=build,
    mode="eval-no-grad",
)
