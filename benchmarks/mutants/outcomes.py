"""What a label can say; free of torch."""

RAISES, NONFINITE, INACCURATE, HARMLESS, UNDECIDED = "raises", "nonfinite", "inaccurate", "harmless", "undecided"
HURTS = (RAISES, NONFINITE, INACCURATE)
BETWEEN = "more than rounding, less than the bound"
"""The error of what is undecided because its numbers differ, and not because none did."""
