"""Logs of a site, read in any of their formats: changes of ports, failures, error counters."""
