"""Conversion of a scenario into configurations of the C++ engine."""
