"""A scenario as a file: load it, change its keys, explain its mistakes, write it."""
