"""The command line: one module for each group of commands, and the consoles that drive runs."""
