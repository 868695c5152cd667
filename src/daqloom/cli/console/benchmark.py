"""Results of the software switch's benchmark, printed as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from daqloom.softswitch.benchmark import Soak, Throughput


def print_found(throughput: Throughput, frame_size: int, destinations: int, loss: float) -> None:
    """Print the forwarding rate for frames of `frame_size` bytes, and the soak test's result."""
    if not throughput.forwarded_hz:
        reason = f" ({throughput.reason})" if throughput.reason else ""
        print(f"no rate was found with a loss of at most {loss:g}{reason}; see --loss")
        return
    print(
        f"{throughput.forwarded_hz / 1e6:.3f} million frames of {frame_size} B a second, "
        f"{throughput.wire_bps / 1e9:.3f} Gb/s, with a loss of at most {loss:g} through "
        f"{destinations} rings; {throughput.reason or f'{len(throughput.trials)} trials'}"
    )
    if throughput.soak:
        _print_soak(throughput.soak, frame_size)


def _print_soak(soak: Soak, frame_size: int) -> None:
    print(
        f"{soak.lost:,} of {soak.offered:,} frames lost in {soak.duration_s:.0f} s at "
        f"{soak.load_hz / 1e6:.3f} million a second, with {soak.changes:,} changes of "
        f"all paces; cores taken away for {soak.away_s / (2 * soak.duration_s):.1%} of "
        "the time" + ("; it was not sent as requested" if soak.rejected else "")
    )
    if soak.power_w is not None:
        bits = 8 * frame_size * soak.forwarded / soak.duration_s
        print(
            f"the processors took {soak.power_w:.1f} W, "
            f"{soak.power_w / bits * 1e9:.2f} nJ for each bit forwarded"
        )
