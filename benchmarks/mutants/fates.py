"""What can become of a mutant that is fixed and run again, or given to ``verify``; free of torch."""

from mutants.outcomes import UNDECIDED

UNFIXED, CURED, STILL, WORSE = "not fixed", "cured", "still hurts", "made worse"
CURED_FATES = (UNFIXED, CURED, STILL, UNDECIDED, WORSE)

CONFIRMED, SOME, RAN, OTHER, UNBUILT = "confirmed", "in some scenarios", "did not fail", "other", "not built"
VERIFIED_FATES = (CONFIRMED, SOME, RAN, OTHER, UNBUILT)
