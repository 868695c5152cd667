"""The file of a study: axes, points, searches, conditions."""
