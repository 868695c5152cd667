"""The three methods by name, one beside the other."""
