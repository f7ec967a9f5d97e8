"""The error texts amplint knows, one TOML file a kind and one table a family."""
