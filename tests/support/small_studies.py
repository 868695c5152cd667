"""Studies of less than a second, for tests of their run and store."""

BRIEF = """
scenario = "small-rack"
methods = ["analyse", "simulate"]
[set]
"run.duration" = "30 ms"
"run.warmup" = "10 ms"
"""
"""One point, a formula and a simulation of it."""

POINTS = (
    BRIEF
    + """
[grid]
"event.rate" = ["0.2 kHz", "0.4 kHz"]
"event.size" = ["500 kB", "1 MB"]
"""
)
"""4 formulas and 4 simulations."""

GRID = (
    POINTS.replace('"0.4 kHz"]', '"0.4 kHz", "0.6 kHz"]')
    + """
[repeat]
seeds = 2
"""
)
"""6 formulas and 12 simulations."""


def search(low: str, high: str, tolerance: str) -> str:
    """The smallest ring of a drop-tail switch that drops nothing; one search."""
    return f"""
scenario = "small-rack"
[set]
"run.duration" = "30 ms"
"run.warmup" = "10 ms"
"network.switch.tor.model" = "drop-tail"
[search]
key = "network.switch.tor.buffer"
find = "smallest"
where = "packets_dropped == 0"
bounds = ["{low}", "{high}"]
tolerance = "{tolerance}"
"""
