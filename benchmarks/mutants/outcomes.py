"""What a label can say; free of torch."""

RAISES, NONFINITE, INACCURATE, HARMLESS, UNDECIDED = "raises", "nonfinite", "inaccurate", "harmless", "undecided"
HURTS = (RAISES, NONFINITE, INACCURATE)
