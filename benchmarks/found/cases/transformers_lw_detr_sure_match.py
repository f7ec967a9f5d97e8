"""The epsilon is zero in float16, so that the cost of a sure prediction is infinite and it is matched last."""

import torch
from found.case import Case


def build():
    from transformers.loss.loss_lw_detr import LwDetrHungarianMatcher

    matcher = LwDetrHungarianMatcher(class_cost=2, bbox_cost=5, giou_cost=2)

    def matched(logits, boxes):
        target = {"class_labels": torch.tensor([0]), "boxes": boxes[0, :1]}
        chosen, _ = matcher({"logits": logits, "pred_boxes": boxes}, [target], 1)[0]
        return boxes[0, chosen]

    boxes = torch.tensor([[[0.2, 0.2, 0.1, 0.1], [0.8, 0.8, 0.4, 0.4]]])
    return matched, (torch.tensor([[[12.0, -2.0], [-2.0, -2.0]]]), boxes), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/loss/loss_lw_detr.py",
    line=64,
    code="AMP302",
    scenario="fp16",
    error="differs from float32",
    breaks="LW-DETR in float16 is trained as if its surest correct predictions were wrong.",
    build=build,
    mode="eval-no-grad",
)
