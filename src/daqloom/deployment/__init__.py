"""A scenario as every method (simulation, model, measurement) uses it: cabled and scheduled."""
