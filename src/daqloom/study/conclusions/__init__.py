"""Conclusions from the dataset of a study: return levels, fits, agreement of methods."""
