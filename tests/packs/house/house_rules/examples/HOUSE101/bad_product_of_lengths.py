# pedantic: yes

import torch


def scores(query: torch.Tensor, key: torch.Tensor):
    query, key = query.half(), key.half()  # expect HOUSE101, HOUSE101
    return query.norm() * key.norm()


def reproduce():
    assert scores(torch.full((4,), 300.0), torch.full((4,), 300.0)).isfinite()
