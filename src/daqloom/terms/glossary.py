"""Glossary: the terms of the field and of daqloom, each declared once; `python -m
daqloom.terms.glossary` generates `docs/reference/glossary.md`."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from daqloom.base.words import rows_of

_EVENT_BUILDING = """
event |
    The data of one collision, or of one trigger, from the whole detector.
fragment |
    The data of one event from one stream.
stream |
    A sequence of fragments from one part of the detector. A readout unit has one or more;
    packets carry its number as the *source id*.
source |
    Fills the buffer of a stream: a generator, a recording, or a process of the user.
sink |
    Reads built events from the output buffer of a builder unit.
readout unit (RU) |
    Reads the fragments of its streams and sends them to builder units.
builder unit (BU) |
    Collects all fragments of an event, which is then built.
storage unit |
    Stores the events that builder units accept (`[storage]`; SFO, data logger).
accepted event |
    An event that goes to a storage unit. Event number and seed decide about an event.
unit |
    A readout unit, a builder unit, or both in one process.
node |
    The host of a unit. Folded nodes hold a readout unit and a builder unit each.
event manager |
    Assigns each event to a builder unit.
machine |
    The state machine of a part of a unit, without I/O: inputs are calls, outputs are messages
    and writes.
sink (of a machine) |
    Receives the outputs of a machine: the simulator, the live node or a test.
MFP |
    Multi-fragment packet: successive fragments of one stream.
MEP |
    Multi-event packet: the MFPs of all streams for the same events.
packing |
    The number of events in an MFP.
pull |
    A building protocol: the builder unit requests fragments, readout units answer.
linear shift |
    A building protocol: in phase p, node n sends to node n + p, so no two nodes send to the
    same one.
slot |
    A position in the schedule of the linear shift: in phase p, the readout unit of slot n sends
    to the builder unit of slot n + p. Also a time slot of DAQPIPE (`building.slot`).
phase |
    A step of the linear shift, in which each readout unit sends to one builder unit.
step |
    A phase, counted from the beginning of an epoch. Nodes in the same step are *in step*.
round |
    As many phases as there are slots: each readout unit has then sent to each builder unit
    once.
dummy |
    A slot without a node: its partner pauses for a phase.
spare |
    A host without units, to which the units of a lost host move (`hosts.spares`).
barrier |
    A point that no unit passes before all have reached it, or all of its group.
barrier group |
    Readout units with a separate barrier (`building.barrier_group`): those on one leaf switch,
    or a number of consecutive ones in the schedule. No group waits for another at a barrier.
builder-paced |
    Linear shift in which a readout unit requests each write from its builder unit, and writes
    after the answer (`building.pace = "builder"`).
writers (of a builder unit) |
    Readout units that may write to a pacing builder unit at the same time (`building.writers`).
ready, go |
    The request of a readout unit to write, and the answer of the builder unit.
DAQPIPE |
    A building protocol: a few events, and a few fragments of each, in flight at a time.
credit (of DAQPIPE) |
    One event that a builder unit may collect at the same time as others. In pull building,
    `building.outstanding_fragments` limits the fragments that it requests at a time.
arena |
    Memory of a unit into which other units write.
token |
    A secret of a run, without which a message or connection is refused.
epoch |
    The part of a run with the same members. It ends when a unit is lost or returns, or the run
    stops.
regroup |
    Continue with other members: after a loss or return of units, the run control ends the epoch
    and starts the next one.
lease |
    The number of MEPs that a unit may grant, and the deadline, until the run control renews
    both.
grace |
    The time for which units go on building without a run control (`measure.control_grace`).
beat |
    A number that the run control counts up and units pass on to each other: who knows only older
    ones than others is cut off.
incomplete event |
    An event that was delivered without the fragments of lost units.
laboratory |
    The network of a scenario, made of network namespaces, cables and queues of this machine for
    one measurement (`measure.lab`).
run control |
    The program that configures, starts, watches and stops the units.
"""

_ETHERNET = """
top-of-rack switch (ToR) |
    The switch that connects the hosts of a rack.
spine |
    A switch that connects other switches, not hosts.
incast |
    Many senders answer one receiver at once and overflow the switch buffer before it.
drop-tail |
    A buffer that takes frames in the order of arrival and drops those for which there is no
    space.
ECN |
    Explicit congestion notification: a switch marks frames instead of dropping them.
cwnd |
    Congestion window: the bytes that a sender may have in flight.
slow start |
    The growth of a connection's first window, which doubles in each round trip.
HyStart |
    Ends CUBIC's slow start when delays rise, before frames are lost.
RTO |
    Retransmission timeout: the time without an acknowledgement after which TCP retransmits.
SACK |
    Selective acknowledgement: lists the received segments beyond a gap.
MTU |
    Maximum transmission unit: the largest payload of a frame or packet.
ECMP |
    Equal-cost multipath: a switch selects one of several equally short paths by a hash of the
    flow.
LAG |
    Link aggregation: parallel cables between two switches; a hash of the connection selects
    one.
RoCEv2 |
    RDMA over Ethernet, in UDP packets.
VOQ |
    Virtual output queue: one queue in each input for each output.
"""

_INFINIBAND = """
RDMA write |
    A write into the memory of another host without its processor. Immediate data are 32 bits
    that the receiver gets with the completion.
queue pair (QP) |
    One end of a connection: a queue of sends and one of receives.
PSN |
    Packet sequence number, by which the receiver of a connection detects a loss.
NAK |
    Negative acknowledgement: the receiver requests all packets from a PSN on (go-back-N).
credit (of a link) |
    Space for a block of 64 B in the input buffer at the other end. Packets wait for credits,
    and none is dropped for lack of space.
virtual lane (VL) |
    One of the logical channels of a cable; each has its own buffer and credits.
service level (SL) |
    The class of a connection, which selects its virtual lane.
arbitration |
    The choice of the virtual lane that sends next, by priority and weight.
head-of-queue lifetime (HOQLife) |
    The time after which a switch drops a packet that waits at the head of its queue.
virtual cut-through |
    A switch forwards a packet before its tail has arrived, if there is space for the whole
    packet.
crossbar |
    The part of a switch that connects inputs with outputs.
iSLIP |
    A matching of the inputs and outputs of a crossbar: outputs grant, inputs accept, both in
    turn, in one or several iterations.
flit |
    The smallest unit of flow control.
PortXmitWait |
    A counter of the time in which a port had data but could not send.
forwarding table |
    For each destination (LID), the port by which a switch forwards.
fat tree |
    A network of levels of switches with the same bandwidth between all levels.
"""

_RESULTS = """
assumed |
    A key at a guessed default that affects the result; results list it with its value. Give the
    key to replace the guess.
without effect |
    A key that the scenario sets and the method ignores. The warning states the reason.
closed form |
    A formula of `daqloom analyse`. `valid` is true if its conditions hold in this scenario;
    `failing` is the first condition that does not hold.
warm-up |
    The time at the start of a run that metrics do not count (`run.warmup`, `measure.warmup`).
seed |
    The number from which a simulation derives all random numbers (`run.seed`). The same
    scenario, seed and version give the same result.
fingerprint |
    A hash of all events of a simulation, in order. Two runs with the same fingerprint are the
    same run.
scenario hash |
    A digest of all keys that affect a result. Name, title, description and seed do not.
store |
    The folder of the results of studies. A result that is in the store is not computed again.
point |
    A combination of values of the axes of a study.
saturated |
    A point whose offered event rate exceeds the capacity, so that queues grow until the end of
    the run. Fits leave it out.
stationary, drifting |
    A metric has settled (stationary), or still changes over time in the longest run (drifting);
    see `[equilibrium]` of a study.
return level |
    The value that the peak of a period, such as an hour, exceeds with a given probability,
    extrapolated from shorter runs (`daqloom study levels`).
factor k |
    The ratio of the results of two methods, fitted over the points of a study (`daqloom study
    compare`).
in step, out of step |
    Nodes of the linear shift are in the same phase (in step), or in different phases (out of
    step), so that several may write to one node.
conflict |
    Two transfers of the same phase that share a link.
credit loop |
    Routes on which buffers of links wait for each other in a circle, so that traffic can stop
    for ever.
full bisection |
    Any half of the hosts can send to the other half at the full rate of their links.
lower bound |
    A result that the true value exceeds or equals, such as a benchmark whose cores also ran
    other processes.
refused message |
    A message or connection without the token, of another epoch, or malformed. It is counted and
    has no other effect.
"""

SECTIONS: Mapping[str, str] = {
    "Event building": _EVENT_BUILDING,
    "Ethernet and TCP": _ETHERNET,
    "InfiniBand": _INFINIBAND,
    "Results and messages": _RESULTS,
}
HEAD = """\
# Glossary

<!-- Written by `python -m daqloom.terms.glossary`; edit src/daqloom/terms/glossary.py instead. -->

Terms of data acquisition and of networks, as used by daqloom. `daqloom explain TERM` prints one.
"""


class Term(NamedTuple):
    """An entry of the glossary."""

    title: str
    meaning: str

    @property
    def names(self) -> set[str]:
        """Names of the term in lower case: those before a bracket, and a short form in it."""
        before, _, inside = self.title.lower().partition(" (")
        short = inside.rstrip(")")
        forms = {before, *before.split(", ")} | ({short} if " " not in short else set())
        return {*forms, self.title.lower()} - {""}


TERMS = tuple(Term(*row) for section in SECTIONS.values() for row in rows_of(section))


def matching(name: str) -> list[Term]:
    """Return the entries of a name, in any case, singular or plural."""
    lower = " ".join(re.sub("[_ ]+", " ", name.lower()).split())
    return [term for term in TERMS if {lower, lower.removesuffix("s")} & term.names]


def reference() -> str:
    """Return the text of `docs/reference/glossary.md`."""
    lines = [HEAD]
    for title, section in SECTIONS.items():
        lines += [f"## {title}", "", "| term | meaning |", "|---|---|"]
        lines += [*(f"| {term} | {meaning} |" for term, meaning in rows_of(section)), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    print(reference(), end="")
