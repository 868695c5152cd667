"""Figures, tables and pages of a study."""
