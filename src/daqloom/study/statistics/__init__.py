"""Extreme values, surfaces, equilibrium: statistics without a study."""
