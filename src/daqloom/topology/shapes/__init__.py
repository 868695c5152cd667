"""Networks by `network.shape`: rack, farm, fat tree, imported network, list of cables."""
