"""Comments that silence findings: what they say, what they hide, which of them hide nothing, and how they are added."""
