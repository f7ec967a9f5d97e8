"""Only one of the two sets of queries is made float32."""

from found.case import Case


def build():
    import torch
    from transformers.models.oneformer.modeling_oneformer import OneFormerLoss

    loss = OneFormerLoss(
        num_classes=2,
        matcher=None,
        weight_dict={},
        eos_coef=0.1,
        num_points=4,
        oversample_ratio=3.0,
        importance_sample_ratio=0.75,
        contrastive_temperature=0.07,
    )

    class Contrastive(torch.nn.Module):
        """The contrastive part alone."""

        def __init__(self):
            super().__init__()
            self.loss = loss

        def forward(self, queries, texts):
            return self.loss.loss_contrastive(queries, texts)["loss_contrastive"]

    return Contrastive(), (torch.randn(2, 3, 4), torch.randn(2, 3, 4)), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/oneformer/modeling_oneformer.py",
    line=459,
    code=None,
    scenario="bf16",
    error="same dtype",
    breaks="OneFormer in half precision cannot be trained: its contrastive loss multiplies float32 with half.",
    build=build,
)
