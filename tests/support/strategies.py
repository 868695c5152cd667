"""Hypothesis strategies: valid random small systems, as documents of a scenario file."""

from hypothesis import strategies as st

from daqloom.scenario import Scenario


def quantity(lowest: float, highest: float, unit: str) -> st.SearchStrategy[str]:
    """Whole quantities between two bounds, in `unit`."""
    return st.integers(int(lowest), int(highest)).map(lambda value: f"{value} {unit}")


def delays(lowest_us: int, highest_us: int, spread_us: int) -> st.SearchStrategy[dict]:
    """Distributions of times."""
    mean = {"mean": quantity(lowest_us, highest_us, "us")}
    spread = {"spread": quantity(0, spread_us, "us")}
    return st.one_of(
        st.fixed_dictionaries({"kind": st.sampled_from(["fixed", "exponential"])} | mean),
        st.fixed_dictionaries({"kind": st.sampled_from(["gaussian", "uniform"])} | mean | spread),
    )


SIZES = st.one_of(
    st.fixed_dictionaries({"size_distribution": st.sampled_from(["fixed", "gaussian", "gamma"])}),
    st.fixed_dictionaries(
        {"size_distribution": st.just("poisson"), "size_quantum": quantity(100, 900, "B")}
    ),
)

SWITCHES = st.one_of(
    st.just({"model": "infinite", "ecn_threshold": "20 kB"}),
    st.fixed_dictionaries(
        {
            "model": st.sampled_from(["shared-memory", "qfx5120-48y"]),
            "ecn_threshold": st.just("20 kB"),
            "buffer": quantity(15, 150, "kB"),
            "dedicated": quantity(0, 5, "kB"),
            "alpha": st.sampled_from([0.125, 0.5, 1, 2, 8]),
            "cell_size": st.sampled_from(["208 B", "256 B"]),
            "cell_metadata": st.sampled_from(["0 B", "64 B"]),
        }
    ),
    st.fixed_dictionaries(
        {
            "model": st.sampled_from(["voq", "acx7100-48l"]),
            "ecn_threshold": st.just("20 kB"),
            "buffer": quantity(15, 300, "kB"),
        }
    ),
    st.fixed_dictionaries(
        {
            "model": st.just("drop-tail"),
            "ecn_threshold": st.just("20 kB"),
            "queue_packets": st.integers(2, 60),
        }
    ),
    st.fixed_dictionaries(
        {
            "model": st.just("software"),
            "ecn_threshold": st.just("20 kB"),
            "queue_packets": st.integers(2, 60),
            "pace": st.sampled_from(["0 b/s", "700 Mb/s"]),
            "cores": st.integers(1, 3),
            "descriptors": st.integers(1, 64),
        }
    ),
)


LINKS = st.fixed_dictionaries(
    {
        "source": st.fixed_dictionaries({"rate": quantity(1, 10, "Gb/s")}),
        "uplink": st.fixed_dictionaries(
            {"rate": quantity(1, 40, "Gb/s"), "count": st.integers(1, 3)}
        ),
        "access": st.fixed_dictionaries({"rate": quantity(1, 3, "Gb/s")}),
    }
)


def documents() -> st.SearchStrategy[dict]:
    """Valid scenario files: at most 6 × 4 hosts and some tens of events of some tens of kB."""
    return st.fixed_dictionaries(
        {
            "event": st.fixed_dictionaries(
                {
                    "size": quantity(1, 150, "kB"),
                    "rate": quantity(50, 1000, "Hz"),
                    "arrivals": st.sampled_from(["poisson", "deterministic", "lhc"]),
                }
            ).flatmap(lambda event: SIZES.map(lambda size: event | size)),
            "building": st.fixed_dictionaries(
                {
                    "protocol": st.just("pull"),
                    "assignment": st.sampled_from(["round-robin", "least-busy", "random"]),
                    "concurrent_events": st.integers(1, 8),
                    "outstanding_fragments": st.sampled_from([0, 1, 3, 8]),
                }
            ),
            "readout": st.fixed_dictionaries(
                {
                    "units": st.integers(1, 6),
                    "response": delays(20, 100, 20),
                    "message_cost": quantity(0, 5, "us"),
                }
            ),
            "builders": st.fixed_dictionaries(
                {
                    "units": st.integers(1, 4),
                    "processing": st.lists(delays(10, 200, 10), max_size=2),
                    "message_cost": quantity(0, 5, "us"),
                }
            ),
            "network": st.fixed_dictionaries(
                {
                    "technology": st.just("ethernet"),
                    "mtu": st.sampled_from(["1500 B", "9000 B"]),
                    "links": LINKS,
                    "switch": st.fixed_dictionaries(
                        {"tor": SWITCHES, "core": st.just({"model": "infinite"})}
                    ),
                }
            ),
            "transport": st.fixed_dictionaries(
                {
                    "congestion": st.sampled_from(["newreno", "cubic", "dctcp", "static"]),
                    "timestamps": st.booleans(),
                    "quick_acks": st.booleans(),
                    "rack": st.booleans(),
                    "tail_loss_probe": st.booleans(),
                    "delayed_ack": st.sampled_from(["0 s", "500 us", "40 ms"]),
                    "rto_min": st.sampled_from(["1 ms", "200 ms"]),
                    "tso_burst": st.sampled_from(["0 B", "16 KiB"]),
                }
            ),
            "run": st.fixed_dictionaries(
                {
                    "duration": st.just("50 ms"),
                    "warmup": st.sampled_from(["0 s", "10 ms"]),
                    "seed": st.integers(0, 2**63 - 1),
                }
            ),
        }
    )


def scenarios() -> st.SearchStrategy[Scenario]:
    """Valid random small systems."""
    return documents().map(Scenario.model_validate)
