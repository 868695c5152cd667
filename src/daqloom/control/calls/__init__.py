"""Calls between processes: gRPC channels and service, TLS, admission, the registry of runs."""
