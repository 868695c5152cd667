"""Adapters of switches and time-series databases: one module per adapter, and shared modules."""
