"""The smallest file that still gives a finding: what ``amplint report`` writes."""
