"""Torch's semantics: operations, layers, creation, autocast, and the operands that do not agree there."""
