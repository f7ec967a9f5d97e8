"""The target is made float32 by hand, the prediction is half."""

from found.case import Case


def build():
    import torch
    from torch_geometric.explain import ModelConfig
    from torch_geometric.explain.algorithm import GNNExplainer

    explainer = GNNExplainer()
    explainer.connect(
        {"explanation_type": "model", "node_mask_type": "object"},
        ModelConfig(mode="binary_classification", task_level="node", return_type="probs"),
    )
    return explainer._loss_binary_classification, (torch.rand(4, 1), torch.ones(4, dtype=torch.long)), {}


CASE = Case(
    package="torch-geometric",
    release="2.8.1",
    path="torch_geometric/explain/algorithm/base.py",
    line=171,
    code="AMP104",
    scenario="bf16",
    error="dtype",
    breaks="Explaining a binary classifier in half precision that gives probabilities fails.",
    build=build,
)
