"""Requests of clients, carried out in child processes with limits on CPU time, memory and files."""
