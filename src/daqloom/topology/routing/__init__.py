"""Forwarding tables and paths."""
