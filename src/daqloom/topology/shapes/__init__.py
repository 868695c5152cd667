"""`network.shape`: a rack, a farm, a fat tree, an imported network, a list of cables."""
