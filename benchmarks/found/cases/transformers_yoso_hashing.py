"""The random rotation of the hashes is drawn in float32."""

from found.case import Case


def build():
    import torch
    from transformers.models.yoso.modeling_yoso import hashing

    return hashing, (torch.randn(1, 4, 8), torch.randn(1, 4, 8), 2, 3), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/yoso/modeling_yoso.py",
    line=94,
    code=None,
    scenario="bf16",
    error="scalar type",
    breaks="YOSO's hashes cannot be computed in half precision.",
    build=build,
    mode="eval-no-grad",
)
