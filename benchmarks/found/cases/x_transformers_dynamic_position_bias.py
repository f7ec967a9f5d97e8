"""DynamicPositionBias feeds float32 positions to its own linear layers."""

from found.case import Case


def build():
    from x_transformers.x_transformers import DynamicPositionBias

    return DynamicPositionBias(dim=8, heads=2, depth=2), (4, 4), {}


CASE = Case(
    package="x-transformers",
    release="2.31.10",
    path="x_transformers/x_transformers.py",
    line=624,
    code="AMP102",
    scenario="bf16",
    error="must have the same dtype",
    breaks="A model with `dynamic_pos_bias=True` cannot run in half precision: the positions are made as float32.",
    build=build,
)
