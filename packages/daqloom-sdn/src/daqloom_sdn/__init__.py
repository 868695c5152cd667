"""Controllers of the software switch: OpenFlow, OVSDB, and its intent for a real Open vSwitch."""
