"""Measurement of a scenario with real units: plan, run and result."""
