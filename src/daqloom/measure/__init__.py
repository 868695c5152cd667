"""Measurement of a scenario: its plan, its run, its result."""
