"""A probability near one is rounded to it, and the logarithm of what is left is infinite."""

import torch
from found.case import Case


def build():
    from transformers.loss.loss_lw_detr import LwDetrImageLoss

    criterion = LwDetrImageLoss(None, num_classes=2, focal_alpha=0.25, losses=["labels"], group_detr=1)

    def loss(logits, boxes):
        first = torch.tensor([0])
        outputs = {"logits": logits, "pred_boxes": boxes}
        return criterion.loss_labels(outputs, [{"class_labels": first, "boxes": boxes[0]}], [(first, first)], 1)[
            "loss_ce"
        ]

    boxes = torch.tensor([[[0.2, 0.2, 0.1, 0.1]]])
    return loss, (torch.tensor([[[9.0, -2.0]]]), boxes), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/loss/loss_lw_detr.py",
    line=146,
    code="AMP303",
    scenario="bf16",
    error="inf or nan",
    breaks="LW-DETR's loss in half precision is infinite once a prediction is sure.",
    build=build,
    mode="eval-no-grad",
)
