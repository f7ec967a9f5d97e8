"""The project around a file: who makes, runs and derives from what it defines."""
