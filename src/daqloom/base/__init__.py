"""Sentences, files, locks and versions: used by every other room."""
