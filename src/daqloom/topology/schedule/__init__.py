"""Slots of hosts in linear shift, and its phases."""
