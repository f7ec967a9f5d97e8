"""Real code that runs clean, broken as people break it; the command is ``benchmarks/mutants``."""
