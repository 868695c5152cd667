"""A scenario as every method takes it: cabled, routed, scheduled."""
