"""The counters of a unit, each with its unit and its meaning.

This table is the only place where they are described: `docs/reference/operations.md` has it from
here (`python -m daqloom.measure.counters`), and a test holds it against what a unit counts.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Counter:
    """What `daqloom control status --json` tells of a unit under `counters`. A `*` stands for any
    name."""

    name: str
    unit: str
    meaning: str

    def matches(self, name: str) -> bool:
        """Whether `name` is this counter."""
        mine, star, _ = self.name.partition("*")
        return name.startswith(mine) if star else name == mine


GROUPS: dict[str, tuple[Counter, ...]] = {
    "The data thread": (
        Counter("beats", "passes", "Of its loop: it lives while this grows."),
        Counter("steps", "steps", "MFPs written and received, MEPs processed: work is done."),
        Counter("sleeps", "times", "It slept, for want of anything to do."),
        Counter("waits", "0 or 1", "It waits for its own source or consumer, now. Not a count."),
        Counter("next_mep", "number", "First MEP beyond what it has answered, now. Not a count."),
        Counter("elapsed_s", "s", "Since the node was made, at the time of this reading."),
    ),
    "Readout unit": (
        Counter("mfps_taken", "MFPs", "Taken from the buffers of the streams."),
        Counter("mfp_bytes_taken", "B", "In these, headers and padding included."),
        Counter("fragment_bytes_taken", "B", "In these, of fragments alone."),
        Counter("mfps_written", "MFPs", "Written into the memory of builder units."),
        Counter("mfp_bytes_written", "B", "In these."),
        Counter("mfps_stale", "MFPs", "Of MEPs that an earlier epoch has finished with: skipped."),
        Counter("mfps_absent", "MFPs", "Numbers that the source left out."),
        Counter("mfps_malformed", "MFPs", "No MFP, or not the one whose turn it was."),
        Counter(
            "streams_broken",
            "streams",
            "Their source wrote descriptors that make no sense. The unit reports an error, is left "
            "out, and comes back with new buffers.",
        ),
        Counter("mfps_blocked", "MFPs", "Had to wait for room in the buffer of their stream."),
        Counter("mfps_late", "MFPs", "Came later than the set rate asks for."),
        Counter("messages_sent", "messages", "To other units, barriers and sizes among them."),
    ),
    "Phases of linear shifting": (
        Counter("phases", "phases", "Gone through."),
        Counter("idle_phases", "phases", "Of these, with nobody to send to: a dummy's turn."),
        Counter("in_phases_s", "s", "In all stages of phases."),
        Counter("sending_s", "s", "Of this, sending."),
        Counter("in_barrier_s", "s", "Of this, from entering a barrier until released."),
        Counter("idle_s", "s", "Of this, with nobody to send to."),
        Counter("entering_s", "s", "Of this, held back before sending."),
        Counter("waiting_for_source_s", "s", "Asleep while sending: no MFP is there."),
        Counter("waiting_for_builder_s", "s", "Asleep while sending: no answer to the sizes."),
        Counter("waiting_for_network_s", "s", "Asleep while sending: writes are under way."),
        Counter("barriers", "barriers", "Left."),
    ),
    "Builder unit": (
        Counter("first_mep_s", "s", "From the start of the first epoch to its first MEP."),
        Counter("meps_granted", "MEPs", "Given a place in the output buffer."),
        Counter("meps_delivered", "MEPs", "To the consumer, whole or not."),
        Counter("meps_built", "MEPs", "Whole."),
        Counter("meps_incomplete", "MEPs", "Delivered with a mask: some MFPs are missing."),
        Counter("meps_dropped", "MEPs", 'Not whole, and dropped: `measure.incomplete = "drop"`.'),
        Counter("meps_discarded", "MEPs", "For which the output buffer had no room."),
        Counter("meps_processed", "MEPs", "Acknowledged by the consumer."),
        Counter("mfps_received", "MFPs", "Whose write has been completed here."),
        Counter("mfp_bytes_built", "B", "Fragments of MEPs delivered."),
        Counter("mep_bytes_built", "B", "The same with headers and padding."),
        Counter("building_s", "s", "From the grant of a MEP until it is built, sum over MEPs."),
    ),
    "Consumer of built events": (
        Counter("meps_checked", "MEPs", "Found right in every byte."),
        Counter("meps_wrong", "MEPs", "Found wrong in some."),
        Counter("wrong.*", "MEPs", "The same by what was wrong first."),
        Counter("meps_repeated", "MEPs", "That the consumer had seen already."),
        Counter("fragments_checked", "fragments", "Of MEPs checked."),
        Counter("fragment_bytes_checked", "B", "Of these."),
        Counter("files_written", "files", 'Finished by `measure.sink = "file"`.'),
        Counter("packets_not_written", "packets", "Lost, as the file system took no more."),
    ),
    "Refused, or out of reach": (
        Counter("refused_messages", "messages", "That no unit of this epoch sends."),
        Counter("refused_writes", "writes", "Whose immediate bits nobody was granted."),
        Counter("unreachable", "units", "That the transport has lost, in all epochs."),
    ),
    "The transport": (
        Counter("transport.messages_sent", "messages", "To others."),
        Counter("transport.messages_received", "messages", "From others."),
        Counter("transport.writes", "writes", "Into the memory of others, or of its own builder."),
        Counter("transport.written_bytes", "B", "In these."),
        Counter("transport.writes_received", "writes", "Told of by the immediate bits of others."),
        Counter("transport.refused_strangers", "messages", "Connections too: without the token."),
        Counter("transport.refused_epoch", "messages", "Of another epoch than this."),
        Counter("transport.refused_malformed", "messages", "Impossible length, source or kind."),
        Counter("transport.sleeps", "times", "It slept until something came."),
    ),
}

BEGIN = "<!-- counters: written by `make docs` -->\n"
END = "<!-- end of counters -->\n"


def described(name: str) -> bool:
    """Whether the table has this counter."""
    return any(counter.matches(name) for group in GROUPS.values() for counter in group)


def table() -> str:
    """The counters as Markdown, a table for each group."""
    lines = []
    for group, counters in GROUPS.items():
        lines += [f"### {group}\n", "| counter | unit | meaning |", "|---|---|---|"]
        lines += [f"| `{each.name}` | {each.unit} | {each.meaning} |" for each in counters]
        lines.append("")
    return "\n".join(lines)


def written_into(page: str) -> str:
    """The page with the table between its marks. Raises ValueError where it has none."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page has no lines {BEGIN.strip()} and {END.strip()}")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(written_into(page.read_text()))
