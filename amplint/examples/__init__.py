"""The examples of rules: where they stand, how they are judged, and how they are run."""
