"""Adapters: one module for each kind of device, found by the entry points `daqloom.adapters`."""
