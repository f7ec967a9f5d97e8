"""Random programs, run for real: the dtype of every expression is among those that the inference says."""
