"""Computing costs: the metrics in the block `engine` of a result."""

COST = """
wall_s | s | wall-clock time | analyse, simulate, measure |
    Wall-clock time.
cpu_s | s | CPU time | analyse, simulate, measure |
    CPU time, all threads together.
virtual_s | s | simulated time | simulate |
    Simulated time, warm-up included.
measured_s | s | measured time | measure |
    Measured time, after the warm-up.
sim_events | events | simulator events | simulate |
    Simulator events executed.
packet_hops | packets | packet hops | simulate |
    Frames delivered, counted on each link, whole run.
packet_hops_per_cpu_s | 1/s | packet hops per CPU second | simulate |
    Packet hops per second of CPU time.
pending_events_peak | events | largest event queue | simulate |
    Largest number of simulator events in the queue.
peak_rss_bytes | B | peak memory | simulate, measure |
    Peak memory of the process; of a measured run, that of the largest unit.
connection_memory_bytes | B | memory of connections | simulate |
    Memory of connections' ends, or queue pairs.
packet_memory_bytes | B | memory of packets | simulate |
    Memory of packets queued or on the wire, at most.
message_memory_bytes | B | memory of messages | simulate |
    Memory of messages under way, at most, and of the records that builders of multi-fragment
    packets keep of units.
event_memory_bytes | B | memory of pending events | simulate |
    Memory of the simulator's pending events, at most.
units | units | units | measure |
    Units that ran.
cores | cores | cores | measure |
    Cores of this machine that units could run on.
"""
