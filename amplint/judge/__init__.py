"""The judge: how sure a claim is, by what the facts force and by the doubts that hold about it.

This room lies just above ``finding.py`` and imports nothing else. The doubts' questions are asked of the facts, by what
lies above; the inference, which finds the facts, does not know it.
"""
