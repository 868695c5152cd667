"""Failures of parts of a system, and how it goes on: outages, other tables, spare hosts."""
