"""The two ends of a measured run: the run control with its processes, and the program of a unit."""
