"""Output of `daqloom measure`."""

import pytest

from daqloom.cli.measure import _print_connections

CONNECTION = {
    "from": [0],
    "to": [1],
    "sent_bytes": [4_000_000],
    "segments_retransmitted": [3],
    "retransmission_timeouts": [0],
    "round_trip_s": [1e-4],
    "least_round_trip_s": [5e-5],
    "delivery_rate_bps": [2.4567e10],
}


def test_the_amounts_of_a_connection_have_units(capsys: pytest.CaptureFixture[str]) -> None:
    _print_connections(CONNECTION)
    *_, row = capsys.readouterr().out.splitlines()
    assert " ".join(row.split()) == "0 1 4 MB 3 0 100 us 50 us 24.6 Gb/s"
