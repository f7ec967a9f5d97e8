"""Findings held against runs of real models; the command is ``benchmarks/differential``."""
