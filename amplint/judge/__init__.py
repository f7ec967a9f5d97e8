"""The judge: how sure a claim is, by what the facts force and by the doubts that hold about it.

This room lies just above ``finding.py`` and imports nothing else, so that the inference may use it too: while it
records operands that disagree, what is told already decides what fails first. The doubts' questions are asked of the
facts, by what lies above.
"""
