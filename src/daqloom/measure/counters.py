"""The counters of a unit, each with its unit of measurement and its meaning.

This table is their only description: `docs/reference/operations.md` is generated from it
(`python -m daqloom.measure.counters`), and a test compares it with what a unit counts.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from daqloom._engine import CounterName
from daqloom.measure.node import ELAPSED


@dataclass(frozen=True, slots=True)
class Counter:
    """A counter under `counters` in `daqloom control status --json`. A `*` stands for any name."""

    name: str
    unit: str
    meaning: str

    def matches(self, name: str) -> bool:
        """Return whether `name` is this counter."""
        mine, star, _ = self.name.partition("*")
        return name.startswith(mine) if star else name == mine


GROUPS: dict[str, tuple[Counter, ...]] = {
    "The data thread": (
        Counter(CounterName.beats, "passes", "Data-loop iterations."),
        Counter(
            CounterName.steps, "steps", "MFPs written and received and MEPs processed: progress."
        ),
        Counter(CounterName.sleeps, "times", "Sleeps of the data thread when it had no work."),
        Counter(
            CounterName.waits, "0 or 1", "Waiting for its own source or consumer now (a gauge)."
        ),
        Counter(CounterName.next_mep, "number", "First MEP not yet answered (a gauge)."),
        Counter(ELAPSED, "s", "Time since the node was created, at this reading."),
    ),
    "Readout unit": (
        Counter(CounterName.mfps_taken, "MFPs", "MFPs taken from the stream buffers."),
        Counter(
            CounterName.mfp_bytes_taken, "B", "Bytes in these MFPs, headers and padding included."
        ),
        Counter(CounterName.fragment_bytes_taken, "B", "Bytes of fragments alone in these MFPs."),
        Counter(CounterName.mfps_written, "MFPs", "MFPs written into the memory of builder units."),
        Counter(CounterName.mfp_bytes_written, "B", "Bytes of MFPs written to builder units."),
        Counter(
            CounterName.mfps_stale, "MFPs", "MFPs skipped: an earlier epoch finished their MEPs."
        ),
        Counter(CounterName.mfps_absent, "MFPs", "MFP numbers missing from the source."),
        Counter(CounterName.mfps_malformed, "MFPs", "Malformed MFPs, or MFPs out of sequence."),
        Counter(
            CounterName.streams_broken,
            "streams",
            "Streams whose source wrote invalid descriptors. The unit reports an error, is removed "
            "from the epoch, and rejoins with new buffers.",
        ),
        Counter(
            CounterName.mfps_blocked, "MFPs", "MFPs that waited for a full stream buffer to drain."
        ),
        Counter(CounterName.mfps_late, "MFPs", "MFPs that came later than the set rate demands."),
        Counter(
            CounterName.messages_sent,
            "messages",
            "Messages to other units, barriers and sizes included.",
        ),
    ),
    "Phases of linear shifting": (
        Counter(CounterName.phases, "phases", "Phases completed."),
        Counter(
            CounterName.idle_phases, "phases", "Phases without a partner: the turn of a dummy."
        ),
        Counter(CounterName.in_phases_s, "s", "Time in all stages of phases."),
        Counter(CounterName.sending_s, "s", "Time in phases spent sending."),
        Counter(
            CounterName.in_barrier_s, "s", "Time in phases from entering a barrier to release."
        ),
        Counter(CounterName.idle_s, "s", "Time in phases without a partner."),
        Counter(CounterName.entering_s, "s", "Time in phases held back before sending."),
        Counter(CounterName.waiting_for_source_s, "s", "Time waiting for an MFP from the source."),
        Counter(
            CounterName.waiting_for_builder_s, "s", "Time waiting for a builder's answer to sizes."
        ),
        Counter(CounterName.waiting_for_network_s, "s", "Time waiting for writes under way."),
        Counter(CounterName.barriers, "barriers", "Barriers completed."),
    ),
    "Builder unit": (
        Counter(
            CounterName.first_mep_s, "s", "Time from the start of the first epoch to the first MEP."
        ),
        Counter(CounterName.meps_granted, "MEPs", "MEPs given a place in the output buffer."),
        Counter(
            CounterName.meps_delivered, "MEPs", "MEPs delivered to the consumer, complete or not."
        ),
        Counter(CounterName.meps_built, "MEPs", "Complete MEPs delivered."),
        Counter(CounterName.meps_incomplete, "MEPs", "MEPs delivered with MFPs missing (masked)."),
        Counter(
            CounterName.meps_dropped,
            "MEPs",
            'MEPs dropped: nothing of them came, or incomplete and `measure.incomplete = "drop"`.',
        ),
        Counter(CounterName.meps_discarded, "MEPs", "MEPs discarded: the output buffer was full."),
        Counter(
            CounterName.mfps_received, "MFPs", "MFPs completely received by this builder unit."
        ),
        Counter(CounterName.mfp_bytes_built, "B", "Bytes of fragments in MEPs delivered."),
        Counter(
            CounterName.mep_bytes_built,
            "B",
            "Bytes of MEPs delivered, headers and padding included.",
        ),
        Counter(
            CounterName.building_s,
            "s",
            "Time from a MEP's grant to its completion, summed over MEPs.",
        ),
    ),
    "Consumer of built events": (
        Counter(
            CounterName.meps_processed,
            "MEPs",
            "MEPs that the sink has finished with. Of a user's consumer: those that it "
            "acknowledged in the epoch that built them.",
        ),
        Counter(
            CounterName.incomplete_meps_processed,
            "MEPs",
            "Incomplete MEPs of these (own sinks only).",
        ),
        Counter(CounterName.meps_checked, "MEPs", "MEPs checked, every byte of them correct."),
        Counter(CounterName.meps_wrong, "MEPs", "MEPs checked, some bytes of them wrong."),
        Counter(f"{CounterName.wrong}*", "MEPs", "Wrong MEPs by the first error found."),
        Counter(
            CounterName.meps_repeated, "MEPs", "Duplicates: MEPs that the consumer already had."
        ),
        Counter(CounterName.fragments_checked, "fragments", "Fragments checked."),
        Counter(CounterName.fragment_bytes_checked, "B", "Bytes of fragments checked."),
        Counter(CounterName.files_written, "files", 'Files completed by `measure.sink = "file"`.'),
        Counter(CounterName.meps_not_written, "MEPs", "MEPs not written in full to files."),
        Counter(
            CounterName.incomplete_meps_not_written,
            "MEPs",
            "MEPs not written that were incomplete.",
        ),
        Counter(
            CounterName.packets_not_written,
            "packets",
            "Packets lost to write errors of the file system.",
        ),
        Counter(
            f"{CounterName.not_written}*",
            "packets",
            "Packets not written, by error, such as ENOSPC.",
        ),
    ),
    "Refused, or out of reach": (
        Counter(
            CounterName.leases_over,
            "times",
            "Leases expired: the run control was silent for too long.",
        ),
        Counter(
            CounterName.refused_messages,
            "messages",
            "Messages refused: no unit of this epoch sends them.",
        ),
        Counter(
            CounterName.refused_writes,
            "writes",
            "Writes refused: their immediate data was not granted.",
        ),
        Counter(
            CounterName.unreachable, "units", "Units that the transport lost, over all epochs."
        ),
    ),
    "The transport": (
        Counter(CounterName.transport_messages_sent, "messages", "Messages sent."),
        Counter(CounterName.transport_messages_received, "messages", "Messages received."),
        Counter(
            CounterName.transport_writes,
            "writes",
            "Writes into remote memory or that of the own builder.",
        ),
        Counter(CounterName.transport_written_bytes, "B", "Bytes in these writes."),
        Counter(
            CounterName.transport_writes_received,
            "writes",
            "Writes received, announced by immediate data.",
        ),
        Counter(
            CounterName.transport_refused_strangers,
            "messages",
            "Messages or connections without the token.",
        ),
        Counter(CounterName.transport_refused_epoch, "messages", "Messages of another epoch."),
        Counter(
            CounterName.transport_refused_malformed,
            "messages",
            "Messages with an invalid length, source or kind.",
        ),
        Counter(CounterName.transport_sleeps, "times", "Sleeps until something was received."),
    ),
}

REFUSED = "refused_"
"""Beginning of the names of counters of what units refused, by cause."""

SHOWN = {
    CounterName.meps_built: "MEPs",
    CounterName.meps_incomplete: "incomplete",
    CounterName.meps_discarded: "discarded",
}
"""Counters in the table of a run's units, and their heads."""

BEGIN = "<!-- counters: written by `make docs` -->\n"
END = "<!-- end of counters -->\n"


def described(name: str) -> bool:
    """Return whether the table describes the counter `name`."""
    return any(counter.matches(name) for group in GROUPS.values() for counter in group)


def table() -> str:
    """Return the counters as Markdown, one table per group."""
    lines = []
    for group, counters in GROUPS.items():
        lines += [f"### {group}\n", "| counter | unit | meaning |", "|---|---|---|"]
        lines += [f"| `{each.name}` | {each.unit} | {each.meaning} |" for each in counters]
        lines.append("")
    return "\n".join(lines)


def written_into(page: str) -> str:
    """Return the page with the table between its marks. Raises ValueError where it has none."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page has no lines {BEGIN.strip()} and {END.strip()}")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(written_into(page.read_text()))
