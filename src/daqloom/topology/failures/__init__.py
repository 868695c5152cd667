"""What breaks of a system, and what goes on without it: outages, other tables, spare hosts."""
