"""State of a run in its folder, from which another run control continues the run."""
