"""Failures of links and their statistics: durations, intervals, links, tables; simulated faults."""
