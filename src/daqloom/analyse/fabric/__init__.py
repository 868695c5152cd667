"""Closed forms of an event builder on a fabric."""
