"""A network in a box: that of a scenario, made of network namespaces, veth cables and queues of
this machine's kernel."""
