"""Training loops of libraries, run on tiny models, and what a mutant makes of the parameters."""
