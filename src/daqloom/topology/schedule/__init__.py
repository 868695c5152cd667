"""Slots of hosts in the schedule of linear shift, and its phases."""
