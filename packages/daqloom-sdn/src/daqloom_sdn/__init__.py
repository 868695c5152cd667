"""Controllers of the software switch (OpenFlow, OVSDB), and export of its file to Open vSwitch."""
