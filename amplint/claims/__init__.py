"""From facts to suspects: the detectors, and the questions about facts that several rules ask."""
