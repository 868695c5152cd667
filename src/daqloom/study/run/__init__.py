"""Cells computed here, by workers or as a job array; the dataset that comes out."""
