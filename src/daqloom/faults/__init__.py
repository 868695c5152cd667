"""Failures of links: logs of a site, and what they tell."""

from __future__ import annotations


class FaultsError(Exception):
    """A log or an option that cannot be used, in one sentence."""
