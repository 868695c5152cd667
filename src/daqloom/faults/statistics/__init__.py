"""Failures of links and their statistics: durations, intervals, links; tables and drawn faults."""
