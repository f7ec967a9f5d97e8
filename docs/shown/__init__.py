"""What the pages show of runs, tables and figures, so that it is kept current: see docs/generate.py."""
