"""What the source alone tells, on Python's own ``ast``: names, bodies, references to torch."""
