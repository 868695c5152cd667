"""How long the schedule check of 800 nodes in 800 phases takes, interpreter start included.

Routes, cabling and linear shift of a fat tree of 40 leaves and 20 spines of 40 ports. See
`analyse_startup` for what is printed.
"""

from __future__ import annotations

from analyse_startup import measure

FAT_TREE = ["clos", "--leaves", "40", "--spines", "20", "--hosts-per-leaf", "20"]

if __name__ == "__main__":
    measure("schedule_check", ["topology", "check", *FAT_TREE, "--json"], target_s=2.0)
