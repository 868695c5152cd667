"""Failures of network parts, and how a run goes on: outages, new tables, spare hosts."""
