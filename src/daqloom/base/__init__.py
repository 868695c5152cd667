"""Helpers for sentences, files, locks and versions, which every other package of daqloom uses."""
