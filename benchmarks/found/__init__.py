"""Defects found in current releases, each with a run that shows it; the command is ``benchmarks/found``."""
