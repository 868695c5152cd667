"""Readers of the dumps and tables that a site has of its network."""
