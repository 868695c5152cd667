"""The command line: a module for each group of commands, and the progress output of runs."""
