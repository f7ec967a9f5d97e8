"""Real bugs of public repositories, before and after their fix: see :mod:`corpus.command`."""
