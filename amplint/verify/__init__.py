"""Runs flagged modules for real, in child processes, and says what they did.

The parent, free of torch: ``targets`` (what to run, and what each finding claims), ``verification`` (jobs to rows),
``parent`` (a child and its limits), ``alone`` and ``snippet*`` (a flagged expression by itself), ``verdict`` and
``report`` (rows), ``timeline`` (the page).  What both sides share: ``job``, ``event``, ``scene``.

The child: ``child`` (one job), ``loading`` (imports the file), ``build`` (makes the module and its inputs), ``modes``
and ``run`` (calls it under a scenario), ``judge`` and ``cell`` (what that means), ``flow`` and ``coverage`` (which line
did it).  ``forked`` does without a job, for :mod:`amplint.testing`.
"""
