"""Runs flagged modules for real, in child processes, and says what they did."""
