"""The two ends of a measured run: the run control with its processes, and the program of a unit."""

import os

# gRPC reads the level of its own messages, such as those about ended connections, on its import.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
