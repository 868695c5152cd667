"""The tables of a scenario, and checks across tables."""
