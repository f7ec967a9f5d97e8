"""The training step: which objects scale, step and clip, and in which order, through helpers of the same file.

It runs only when a rule asks for :attr:`amplint.infer.state.facts.FileFacts.training`. Statements are followed as the
inference follows them, by :mod:`amplint.infer.syntax.control`, with what has happened to the gradients in the place of
dtypes: by the time that they are clipped, stepped on or left.
"""
