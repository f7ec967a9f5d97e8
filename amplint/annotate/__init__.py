"""The dtype of every expression of a file, for people and editors: ``amplint dtypes``."""
