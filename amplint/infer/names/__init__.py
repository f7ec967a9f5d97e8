"""Names across files and imports: what a project defines, and what annotations and strings promise of it."""
