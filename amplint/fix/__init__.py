"""Rewrites: which are applied together, what they leave behind, and how they reach the disk."""

from amplint.fix.edits import apply_edits
from amplint.fix.selection import allowed, without_overlaps
from amplint.fix.settling import Outcome, fix_source
from amplint.fix.writing import FixError, unified_diff, write_atomically

__all__ = [
    "FixError",
    "Outcome",
    "allowed",
    "apply_edits",
    "fix_source",
    "unified_diff",
    "without_overlaps",
    "write_atomically",
]
