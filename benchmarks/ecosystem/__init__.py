"""What amplint says of released packages: see :mod:`ecosystem.command`."""
