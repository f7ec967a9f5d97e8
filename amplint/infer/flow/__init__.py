"""Questions about paths and variables that need no dtypes."""
