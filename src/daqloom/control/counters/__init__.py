"""Counters of units: metrics, warnings, the Prometheus exporter, shared memory."""
