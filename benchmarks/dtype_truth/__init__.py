"""How many of the dtypes that the inference gives are what torch computes: see :mod:`dtype_truth.command`."""
