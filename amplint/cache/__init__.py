"""What was found in files when they were last checked, kept between runs.

A file's result is taken again while all that it rested on is as it was: amplint itself, what is asked for, the bytes of
the file and, where they did not decide alone, those of its whole surroundings. Arrows: :mod:`~amplint.cache.checking`
asks :mod:`~amplint.cache.surroundings` what a file stands in, :mod:`~amplint.cache.digests` what files hold and
:mod:`~amplint.cache.store` for what is kept, which :mod:`~amplint.cache.records` puts into words.
"""

LEAST_FILES = 10
"""Files of a run from which on results are kept: fewer are checked as fast as their surroundings are looked at."""
