"""Cost of failures: the throughput of a network with broken cables, times their statistics."""
