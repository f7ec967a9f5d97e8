"""The reflection multiplies by a float32 sign, and its product meets half correspondences."""

from found.case import Case


def build():
    import torch
    from kornia.geometry.homography import _refine_homography_lm

    points = torch.cat([torch.rand(6, 2), torch.ones(6, 1)], 1)
    return _refine_homography_lm, (torch.eye(3)[None], points, torch.rand(6, 2), None, "mse", 1.0, 1), {}


CASE = Case(
    package="kornia",
    release="0.9.0",
    path="kornia/geometry/homography.py",
    line=460,
    code="AMP103",
    scenario="bf16",
    error="dtype",
    breaks="RANSAC cannot refine homographies in half precision.",
    build=build,
    mode="eval-no-grad",
)
