"""The comparison for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from comparison import Check

MARKS = {True: "yes", False: "NO", None: "-"}


def thresholds(found: Sequence[Check]) -> str:
    """One line per load: the smallest buffer that drops nothing."""
    lines = [f"{'smallest buffer without drops':30}{'kernel':>9}{'simulated':>11}   within 5 %"]
    for check in found:
        name = check.figure.split(",")[0]
        lines.append(
            f"{name + ', packets':30}{check.kernel:>9g}{check.simulation:>11g}   "
            f"{MARKS[check.within]} ({check.ratio:.3f})"
        )
    return "\n".join(lines) + "\n"


def points(measured: Sequence[dict[str, Any]]) -> str:
    """One line per point: kernel and simulation beside each other, and whether they agree."""
    lines = [
        f"{'':20}{'goodput, Mb/s':^28}{'time-outs':^22}{'drops':^16}{'median round, ms':^18}",
        f"{'load, buffer':20}" + f"{'kernel':>8}{'sim':>8}  {'within':10}"
        f"{'kernel':>8}{'sim':>6}  {'within':6}" + f"{'kernel':>8}{'sim':>8}" * 2,
    ]
    for row in measured:
        kernel, simulation = row["kernel"], row["simulation"]
        goodput, *timeouts = row["checks"]
        verdict = f"{MARKS[goodput.within]} ({goodput.ratio:.2f})"
        lines.append(
            f"{row['point'].name:20}"
            f"{kernel.goodput_bps / 1e6:>8.1f}{simulation.goodput_bps / 1e6:>8.1f}  {verdict:10}"
            f"{kernel.timeouts:>8}{simulation.timeouts:>6}  "
            f"{MARKS[timeouts[0].within] if timeouts else '-':6}"
            f"{kernel.drops:>8}{simulation.drops:>8}"
            f"{kernel.median_round_s * 1e3:>8.1f}{simulation.median_round_s * 1e3:>8.1f}"
        )
    return "\n".join(lines)
