"""Records of runs: a folder per run with its series, its log of events and its description."""
