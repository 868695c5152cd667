"""Other common names of keys and values, for hints on unknown ones, and unsupported features."""

_NO_PFC = 'PFC is not simulated; a switch of model "software" can pause whole ports, by pause_at'
_NO_DCQCN = "DCQCN is not simulated; RDMA has no congestion control"
NOT_SIMULATED = dict.fromkeys(("lossless", "pfc", "xoff", "xon"), _NO_PFC) | {
    "bbr": "BBR is not simulated",
    "dcqcn": _NO_DCQCN,
}
"""Unsupported keys or values of a scenario → sentence that explains why no equivalent exists."""

INSTEAD = {
    ("building.credits", "pull"): "building.outstanding_fragments limits the fragments that a "
    "builder unit of pull building requests at a time",
}
"""Key, and the value of another key with which it does not apply → the key that does."""

KEYS: dict[str, tuple[str, ...]] = {
    "algorithm": ("congestion",),
    "bandwidth": ("rate",),
    "capacity": ("rate",),
    "cc": ("congestion",),
    "congestion control": ("congestion",),
    "congestion_control": ("congestion",),
    "delay": ("latency",),
    "distribution": ("size_distribution", "kind"),
    "dynamic_th": ("alpha",),
    "dynamic_threshold": ("alpha",),
    "guaranteed": ("dedicated",),
    "headroom": ("dedicated",),
    "lag": ("count",),
    "lags": ("count",),
    "latency": ("delay",),
    "marking": ("ecn_threshold",),
    "memory": ("buffer",),
    "number": ("units", "count"),
    "pfc": ("pause_at",),
    "pool": ("buffer",),
    "price": ("cost",),
    "protocol": ("kind",),
    "rate_limit": ("pace",),
    "reserved": ("dedicated",),
    "seed": ("run.seed",),
    "shaper": ("pace",),
    "shared": ("buffer",),
    "sigma": ("size_spread", "spread"),
    "speed": ("rate",),
    "std": ("size_spread", "spread"),
    "stddev": ("size_spread", "spread"),
    "topology": ("shape",),
    "type": ("kind", "protocol", "technology", "model"),
    "xoff": ("pause_at",),
}
"""Last part of an unknown name → keys of its table, or dotted keys; the first that exists
counts."""

VALUES: dict[str, tuple[str, ...]] = {
    "bess": ("software",),
    "clos": ("fat-tree",),
    "constant": ("fixed", "deterministic"),
    "deep": ("voq",),
    "dpdk": ("software",),
    "exponential": ("poisson",),
    "fifo": ("drop-tail",),
    "ib": ("infiniband", "rdma"),
    "infiniband": ("rdma",),
    "leaf-spine": ("fat-tree",),
    "linear": ("shift",),
    "linear shifting": ("shift",),
    "linear-shifting": ("shift",),
    "normal": ("gaussian",),
    "periodic": ("deterministic",),
    "push": ("shift",),
    "random": ("poisson",),
    "regular": ("deterministic",),
    "roce": ("rdma",),
    "rocev2": ("rdma",),
    "tail-drop": ("drop-tail",),
    "taildrop": ("drop-tail",),
    "unlimited": ("infinite",),
}
"""Unknown value → suggested values. The first value that the key accepts is suggested."""
