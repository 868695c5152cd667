"""DAQPIPE's throughput over credits and parallel sends, on a clean fat tree and a real cluster.

Runs the scenarios daqpipe-fattree72 and daqpipe-cluster64 over a grid, as figures 7 and 8 of the
flit-level study do, and prints one JSON object: Gb/s of payload per node, and what the cluster
loses. Published there: a loss of up to 40 Gb/s, about 5 Gb/s at the best setting. Words such as
`fragments.packing=8192` are overrides of both scenarios. Takes some five minutes.
"""

import json
import sys

import daqloom

CREDITS = (1, 2, 4, 8, 16)
PARALLEL_SENDS = (1, 2, 4, 8)
COLLECTION_MS = 0.8
"""A builder's link carries the 72 fragments of 128 KiB of an event in so many ms."""
PUBLISHED = {"largest_loss_gbps": 40, "loss_at_best_gbps": 5}


def main(overrides: list[str]) -> None:
    tree = throughput_gbps("daqpipe-fattree72", overrides)
    cluster = throughput_gbps("daqpipe-cluster64", overrides)
    loss = {setting: tree[setting] - cluster[setting] for setting in tree}
    best = max(cluster, key=lambda setting: cluster[setting])
    report = {
        "fattree72_gbps": as_table(tree),
        "cluster64_gbps": as_table(cluster),
        "loss_gbps": as_table(loss),
        "best_of_cluster": {"credits": best[0], "parallel_sends": best[1]},
        "largest_loss_gbps": round(max(loss.values()), 1),
        "loss_at_best_gbps": round(loss[best], 1),
        "best_against_best_gbps": round(max(tree.values()) - cluster[best], 1),
        "published": PUBLISHED,
    }
    print(json.dumps(report, indent=2))


def throughput_gbps(name: str, overrides: list[str]) -> dict[tuple[int, int], float]:
    """By (credits, parallel sends)."""
    scenario = daqloom.load(name).with_overrides(overrides)
    found = {}
    for credits in CREDITS:
        for sends in PARALLEL_SENDS:
            # Builders begin in step; they have got out of it when all have built all their first
            # events, and are measured over as many again.
            warmup_ms = 2 * credits * COLLECTION_MS
            setting: dict[str, object] = {
                "daqpipe.credits": credits,
                "daqpipe.parallel_sends": sends,
                "run.warmup": f"{warmup_ms} ms",
                "run.duration": f"{2 * warmup_ms} ms",
            }
            result = scenario.with_overrides(setting).simulate()
            found[credits, sends] = result.metrics["node_throughput_bps"] / 1e9
            print(f"{name} {credits} {sends}: {found[credits, sends]:.1f} Gb/s", file=sys.stderr)
    return found


def as_table(found: dict[tuple[int, int], float]) -> dict[str, dict[str, float]]:
    """{credits: {parallel sends: …}}, in Gb/s to one decimal."""
    return {
        f"credits {credits}": {
            f"sends {sends}": round(found[credits, sends], 1) for sends in PARALLEL_SENDS
        }
        for credits in CREDITS
    }


if __name__ == "__main__":
    main(sys.argv[1:])
