"""Findings in installed libraries, judged by running them: see :mod:`confirmed.command`."""
