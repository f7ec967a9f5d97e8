"""The state of an analysis: its session and frames, what holds where paths meet, and the facts it writes down."""
