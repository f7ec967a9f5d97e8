"""Where an analysis begins: the functions and methods that a caller of the file would run."""
