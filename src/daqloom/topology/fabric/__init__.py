"""Hosts, switches and cables, and their levels."""
