"""The points to compare masks at are drawn in float32."""

import torch
from found.case import Case


def build():
    from transformers.loss.loss_rf_detr import RfDetrHungarianMatcher

    matcher = RfDetrHungarianMatcher(mask_point_sample_ratio=1)

    def match(logits, boxes, masks):
        outputs = {"logits": logits, "pred_boxes": boxes, "pred_masks": masks}
        target = {"class_labels": torch.tensor([0]), "boxes": boxes[0, :1], "masks": torch.ones(1, 4, 4)}
        matcher(outputs, [target], 1)
        return boxes

    return match, (torch.randn(1, 2, 3), torch.rand(1, 2, 4), torch.randn(1, 2, 4, 4)), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/loss/loss_rf_detr.py",
    line=135,
    code="AMP103",
    scenario="bf16",
    error="scalar type",
    breaks="RF-DETR with masks cannot be trained in half precision.",
    build=build,
    mode="eval-no-grad",
)
