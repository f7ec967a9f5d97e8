"""Machines, installed versions and precision settings, checked before a run."""
