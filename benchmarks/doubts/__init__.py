"""What each doubt costs and saves, on labelled findings."""
