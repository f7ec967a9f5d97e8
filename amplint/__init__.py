"""amplint: a linter for mixed precision in PyTorch.

``amplint check`` infers the dtype of every tensor under each way of running in mixed precision and reports where the
answer is a crash, a silent loss of accuracy, or a wasted cast.
"""

__version__ = "0.1.0"
