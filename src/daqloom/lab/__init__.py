"""Laboratory: a scenario's network made of network namespaces, veth cables and kernel queues."""
