"""The record that every method returns: metrics, series, warnings."""
