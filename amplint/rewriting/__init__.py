"""Edits that several rules share, made from a visit of the lossless source."""
