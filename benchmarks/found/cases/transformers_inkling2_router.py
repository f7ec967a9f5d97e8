"""The router's input is cast to float32, its weight is not."""

from found.case import Case


def build():
    import torch
    from transformers.models.inkling2.modeling_inkling2 import Inkling2TextConfig, Inkling2TopKRouter

    config = Inkling2TextConfig(hidden_size=8, n_routed_experts=4, num_experts_per_tok=1)
    router = Inkling2TopKRouter(config)
    torch.nn.init.normal_(router.weight)
    return router, (torch.randn(1, 3, 8),), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/models/inkling2/modeling_inkling2.py",
    line=711,
    code="AMP102",
    scenario="bf16",
    error='same dtype',
    breaks='Inkling 2 models in half precision cannot run unless their routers are kept in float32.',
    build=build,
    mode="eval-no-grad",
)
