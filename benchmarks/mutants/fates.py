"""What can become of a mutant that is fixed and run again, or given to ``verify``; free of torch."""

from mutants.outcomes import UNDECIDED

UNFOUND, UNFIXED, CURED, STILL, WORSE = "not found", "no fix", "cured", "still hurts", "made worse"
FIXED_FATES = (CURED, STILL, UNDECIDED, WORSE)
CURED_FATES = (UNFOUND, UNFIXED, *FIXED_FATES)

CONFIRMED, SOME, RAN, OTHER, UNBUILT = "confirmed", "in some scenarios", "did not fail", "other", "not built"
VERIFIED_FATES = (CONFIRMED, SOME, RAN, OTHER, UNBUILT)
