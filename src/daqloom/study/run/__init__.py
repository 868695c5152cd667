"""Computation of a study's cells here, by workers or as a job array, and the resulting dataset."""
