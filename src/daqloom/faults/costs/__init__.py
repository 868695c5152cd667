"""Cost of failures: throughput of a network with broken cables, weighted by their statistics."""
