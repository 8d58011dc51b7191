"""The parts of acs-report: traces, the page of one or two of them, and what they say in a terminal."""
