"""The three methods by name, and comparisons of them."""
