"""The training step: which objects scale, step and clip, and in which order, through helpers of the same file.

This is a second, smaller interpreter beside the one for dtypes. It runs only when a rule asks for
:attr:`amplint.infer.state.facts.FileFacts.training`, and follows paths rather than values: what has happened to the
gradients by the time that they are clipped, stepped on or left.
"""
