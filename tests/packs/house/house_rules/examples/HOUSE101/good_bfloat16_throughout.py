import torch


def scores(query: torch.Tensor, key: torch.Tensor):
    query, key = query.bfloat16(), key.bfloat16()
    return query.norm() * key.norm()


def reproduce():
    assert scores(torch.full((4,), 300.0), torch.full((4,), 300.0)).isfinite()
