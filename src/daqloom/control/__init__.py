"""The run control and its units: gRPC, processes, counters, certificates."""
