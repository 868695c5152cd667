"""One computer: its cards, cores, processes and namespaces, and calibration of its costs."""
