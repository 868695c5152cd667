"""Hooks: programs and functions of an experiment that run before or after transitions of a run."""
