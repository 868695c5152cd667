"""Figures of failures."""
