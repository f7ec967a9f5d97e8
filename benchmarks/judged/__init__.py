"""Findings in released packages that someone has read and judged."""
