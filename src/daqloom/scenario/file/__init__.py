"""Scenario files: loading, overriding keys, explaining mistakes, writing."""
