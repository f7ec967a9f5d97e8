"""Distances to the keys by cdist, which has no kernel for 16 bit."""

from found.case import Case


def build():
    import torch
    from torch_geometric.nn import MemPooling

    return MemPooling(3, 4, heads=2, num_clusters=2), (torch.randn(4, 3), torch.tensor([0, 0, 1, 1])), {}


CASE = Case(
    package="torch-geometric",
    release="2.8.1",
    path="torch_geometric/nn/pool/mem_pool.py",
    line=121,
    code="AMP305",
    scenario="bf16",
    error="not implemented for",
    breaks="`MemPooling` cannot run in half precision.",
    build=build,
)
