"""Laboratory: a scenario's network of network namespaces, veth cables and kernel queues."""
