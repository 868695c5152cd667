"""Return levels, fits and the agreement of methods, concluded from a dataset."""
