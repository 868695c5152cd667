"""Figures and pages of one system and of its results."""
