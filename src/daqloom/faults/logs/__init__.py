"""Readers of a site's logs in all known formats: port changes, failures, error counters."""
