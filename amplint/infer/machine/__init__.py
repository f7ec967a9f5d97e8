"""Python's semantics: expressions, statements, calls, objects, guards."""
