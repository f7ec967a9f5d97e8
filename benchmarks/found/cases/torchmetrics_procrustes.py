"""The product is taken in 16 bit under autocast; the SVD of it raises, which is caught and answered with zero."""

from found.case import Case


def build():
    import torch
    from torchmetrics.functional.shape.procrustes import procrustes_disparity

    def disparity(points, others):
        return procrustes_disparity(points, others, return_all=True)[0].sum()

    return disparity, (torch.randn(1, 5, 3), torch.randn(1, 5, 3)), {}


CASE = Case(
    package="torchmetrics",
    release="1.9.0",
    path="torchmetrics/functional/shape/procrustes.py",
    line=49,
    code=None,
    scenario="autocast-bf16",
    error="differs from float32",
    breaks="Procrustes disparity in a step under autocast is 0, that is perfect, whatever the points are.",
    build=build,
    mode="eval-no-grad",
)
