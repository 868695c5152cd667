"""Dumps and tables that a site has of its network."""
