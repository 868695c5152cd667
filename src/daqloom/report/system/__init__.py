"""Figures and pages of one scenario's network, and of the results of runs on it."""
