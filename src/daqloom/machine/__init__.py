"""One computer: its cards, cores, processes, namespaces, and what its hosts cost."""
