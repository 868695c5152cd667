"""Changes between two files of a switch, as steps that the engine applies between two turns."""

from daqloom._switch import EVERY_VLAN, Changes, PortLimits
from daqloom.configuration.settings import settings
from daqloom.softswitch.configure import address_number, entries_of, first_ring, port_number
from daqloom.softswitch.document import FixedAddress, SwitchFile

RULES_FULL = (
    "{}: the table of rules is full, or has more than 32 kinds of them; leave some out, or let "
    "them match on the same keys"
)
ADDRESSES_FULL = "addresses.fixed.{}: the table of addresses is full; raise addresses.most"


def changes_between(before: SwitchFile, after: SwitchFile) -> tuple[Changes, dict[int, str]]:
    """Return the steps from one file to the other, and for each step that the engine may refuse the
    reason, by number. Both files have the same ports; `before` has the rings of `after`, or no
    rings if the engine's configuration already has their rates and sizes."""
    changes, refusals = Changes(), dict[int, str]()
    for number, (name, port) in enumerate(after.ports.items()):
        old_port = before.ports[name]
        if (port.floods, port.addresses) != (old_port.floods, old_port.addresses):
            changes.set_port_limits(number, settings(PortLimits, port))
    for number, (name, ring) in enumerate(after.rings.items(), first_ring(after)):
        old = before.rings.get(name)
        if ring.pause_at != (old.pause_at if old else 0):
            changes.set_pause(number, ring.pause_at)
        if ring.mirrored != (old.mirrored if old else False):
            changes.set_mirrored(number, ring.mirrored)
        if not old:
            continue
        if ring.rate != old.rate:
            changes.set_rate(number, ring.rate)
        if (ring.packets, ring.bytes) != (old.packets, old.bytes):
            changes.set_limits(number, ring.packets, ring.bytes)
        if ring.ecn_threshold != old.ecn_threshold:
            changes.set_mark(number, ring.ecn_threshold)
    old_entries, entries = entries_of(before), entries_of(after)
    for name, entry in old_entries.items():
        if entries.get(name) != entry:
            changes.remove_rule(entry.match, entry.priority)
    for name, entry in entries.items():
        if old_entries.get(name) != entry:
            refusals[len(changes)] = RULES_FULL.format(name)
            changes.set_rule(entry.match, entry.priority, entry.action)
    old_addresses, addresses = before.addresses.fixed, after.addresses.fixed
    for name, old_address in old_addresses.items():
        if addresses.get(name) != old_address:
            changes.forget_address(address_number(old_address.address), _vlan(old_address))
    for name, address in addresses.items():
        if old_addresses.get(name) != address:
            refusals[len(changes)] = ADDRESSES_FULL.format(name)
            behind = port_number(after, address.port)
            changes.fix_address(address_number(address.address), _vlan(address), behind)
    return changes, refusals


def _vlan(address: FixedAddress) -> int:
    return EVERY_VLAN if address.vlan is None else address.vlan
