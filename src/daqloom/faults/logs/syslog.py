"""Reader of link changes in system logs: of switches (SONiC, EOS, NX-OS, IOS, Junos and others),
and of the kernel on hosts and switches (Linux, FreeBSD).

A line consists of a frame (time, host) and a text. The frames are those of syslog daemons, of
switches' `show logging`, of `dmesg -T` and of OpenWrt's `logread`.
"""

from __future__ import annotations

import re
from typing import Any

from daqloom.base.line_counts import CountedLines
from daqloom.faults.logs import opensm_log
from daqloom.faults.logs.change import Change, LogContent, Port
from daqloom.faults.logs.clock import Calendar, iso_s

_MONTH = r"(?P<month>[A-Z][a-z]{2}) +(?P<day>\d{1,2})"
_TIME = r"(?P<time>\d\d:\d\d:\d\d(?:\.\d{1,9})?)"
_LEVEL = (
    r"(?:TRACE|[A-Z]{0,3}DEBUG|INFO(?:RMATION)?|NOTICE|WARN(?:ING)?|ERR(?:OR)?|CRIT(?:ICAL)?|ALERT"
    r"|EMERG|FATAL|PANIC|SEVERE|FINE|LOG|STATEMENT|DETAIL|HINT)(?![\w.-])"
)
_HOST = rf"(?P<host>(?!{_LEVEL}|UTC |GMT )\w\S{{0,254}})"
_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_FRAMES = tuple(
    re.compile(frame + r"(?P<text>.*)")
    for frame in (
        # 000123: *Mar  4 2024 08:00:00.123 CET: %LINK-3-UPDOWN: Interface …
        rf"(?:<\d{{1,3}}>)?(?:\d{{1,10}}: )?[*.]?{_MONTH}(?: (?P<year>\d{{4}}))? {_TIME}"
        r"(?: [A-Z]{2,5})?: (?=%)",
        # Mar  4 08:00:00.123 2024  tor2 …: Junos with `time-format year millisecond`
        rf"(?:<\d{{1,3}}>)?{_MONTH} {_TIME} (?P<year>\d{{4}}) +{_HOST} ",
        # Mar  4 08:00:00 leaf1 …; SONiC may put the year first
        rf"(?:<\d{{1,3}}>)?(?:(?P<year>\d{{4}}) )?{_MONTH} {_TIME} +{_HOST} ",
        rf"(?:<\d{{1,3}}>1? ?)?(?P<iso>{_ISO}) +{_HOST} ",
        # 2025-04-27T05:48:33,123456+01:00 mlx5_core …: dmesg --time-format iso
        r"(?P<iso>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{6}[+-]\d\d:\d\d) ",
        # Mar  4 2024 08:00:00 leaf1 …
        rf"(?:<\d{{1,3}}>)?{_MONTH} (?P<year>\d{{4}}) {_TIME} +{_HOST} ",
        # [Sun Apr 27 05:48:33 2025] mlx5_core 0000:3b:00.0 ens3f0: Link down
        rf"(?:<\d{{1,3}}>)?\[[A-Z][a-z]{{2}} {_MONTH} {_TIME} (?P<year>\d{{4}})\] ",
        # Sun Apr 27 05:48:33 2025 kern.info kernel: [  12.3] eth0: link down
        rf"[A-Z][a-z]{{2}} {_MONTH} {_TIME} (?P<year>\d{{4}}) (?=[a-z0-9]+\.[a-z]+ )",
    )
)
_OPENSM = re.compile(r"\bopensm(?:\[\d{1,9}\])?: (.*)", re.IGNORECASE)
_TAG = re.compile(
    # kernel: sshd[123]: swss#orchagent: %ETHPORT-5-IF_UP: behind a facility, a level or a number of
    # the event, if any
    rf"(?::? ?|\d{{5}} |[a-z0-9]+\.[a-z]+ |{_LEVEL} )"
    rf"(?:%|(?!{_LEVEL}:)[\w/(][^\s:\[\]]{{0,80}}(?:\[[^\]\s]{{1,40}}\])?:(?!\S))"
    # RFC 5424: program, process, message and data
    r"|\S{1,48} (?:\d+|-) \S{1,32} (?:-|\[)"
    # syslogd itself
    r"|(?:last )?message repeated \d+ times|-- MARK --"
)
"""Name of the program that wrote a syslog line; other logs with dates have no such name."""
_SINCE_BOOT = re.compile(r"(?:<\d{1,3}>)?\[ *\d{1,9}\.\d{1,9}\] ")
_NAME = r"(?P<port>[A-Za-z][\w.-]{0,63})"
"""Name of an interface of Linux or FreeBSD."""
_PORT = r"(?P<port>(?:\d{1,4}GE|[A-Za-z])[\w./:-]{0,63})"
"""Name of a port of a switch, such as `Ethernet3/1`, `et-0/0/12`."""
_UP_DOWN = r"(?P<state>up|down)\b"
_STATES = tuple(
    re.compile(statement, re.IGNORECASE)
    for statement in (
        # SONiC: updatePortOperStatus: Port Ethernet48 oper state set from up to down
        rf"Port {_PORT} oper state set from (?!down to down|up to up)\w+ to {_UP_DOWN}",
        # Port 1:3 link down; Port 12 link is down; Port 1/1/1 operational state changed to down
        rf"\bPort (?P<port>[A-Za-z]*\d[\w:/.-]{{0,31}})(?: (?:link(?: state)?|oper\w*(?: state)?))?"
        rf"(?: (?:is(?: now)?|went|goes|changed to))? {_UP_DOWN}",
        # port 3 is now off-line
        r"\bport (?P<port>[A-Za-z]{0,3}\d[\w/]{0,15}) is now (?P<state>on|off)-?line",
        # port_state: et-0/0/3 -> DOWN
        rf"\bport_?state: {_PORT} -> {_UP_DOWN}",
        # swp3 lost link
        r"\b(?P<port>[A-Za-z][\w.-]{0,62}\d[\w./-]{0,62}) (?P<state>lost|gained) link\b",
        # Link Down: Unit: 1 Slot: 0 Port: 3
        rf"\bLink {_UP_DOWN}: (?P<port>Unit: \d{{1,3}} Slot: \d{{1,3}} Port: \d{{1,4}})",
        # %LINK-W-Down:  gi1/0/3
        rf"%LINK-[A-Z]-{_UP_DOWN}: +{_PORT}",
        # %IFMGR-5-OSTATE_DN: Changed interface state to down: Te 0/1
        rf"Changed interface state to {_UP_DOWN}: (?P<port>\w{{2,20}} [\d/]{{1,20}})",
        # System: Interface ethernet 1/1/1, state down
        rf"Interface (?:\w+ )?(?P<port>[A-Za-z]*\d[\w./:-]{{0,63}}), state {_UP_DOWN}",
        # bonding: link status definitely down for interface ens1f0
        rf"link status definitely {_UP_DOWN} for interface {_NAME}",
        # bond0: (slave ens1f0): link status definitely down, disabling slave
        rf"\(slave {_NAME}\): (?:link status definitely|interface is now) {_UP_DOWN}",
        # bond0: interface ens1f0 is now down
        rf"\binterface {_NAME} is now {_UP_DOWN}",
        # EOS, IOS, IOS-XR, Onyx: Interface Ethernet3/1 (text), changed state to down
        rf"Interface {_PORT}(?: \(.{{0,200}}?\))?,? changed (?:\w+ )?state to (?:\w+ )?{_UP_DOWN}",
        # NX-OS: %ETHPORT-5-IF_DOWN_LINK_FAILURE: Interface Ethernet1/1 is down (Link failure)
        rf"IF_(?:DOWN|UP)(?!_ADMIN)\w*: +Interface {_PORT} is {_UP_DOWN}",
        # Junos: SNMP_TRAP_LINK_DOWN: ifIndex 550, …, ifName et-0/0/12
        rf"SNMP_TRAP_LINK_{_UP_DOWN}.{{0,200}}\bifName {_PORT}",
        # FreeBSD: igb1: link state changed to DOWN
        rf"\b{_NAME}: link state changed to {_UP_DOWN}",
        # Dell OS10: Interface operational state is down ethernet1/1/1
        rf"Interface operational state is (?P<state>up|down) ?:? ?{_PORT}",
        # Huawei: Interface 100GE1/0/1 has turned into DOWN state
        rf"Interface {_PORT} has (?:turned|changed) (?:in)?to {_UP_DOWN}",
        # Comware: Physical state on the interface HundredGigE1/0/1 changed to down
        rf"Physical state on the interface {_PORT} changed to {_UP_DOWN}",
        # OpenWrt: netifd: Network device 'eth0' link is down
        rf"Network device '{_NAME}' link is {_UP_DOWN}",
        # qede: [qede_link_update:2424(ens1f0)]Link is down
        rf"_link_update:\d+\({_NAME}\)\] ?Link is {_UP_DOWN}",
        # mlx5_core 0000:3b:00.0 ens3f0: Link down; igb: eno1 NIC Link is Up 1000 Mbps; Generic PHY:
        # eth0 - Link is Down
        r"(?<![\w.:-])(?P<port>[A-Za-z][\w.-]{0,62}?\d[\w.-]{0,62})(?::| -)? (?:NIC )?(?:Copper )?"
        rf"link (?:is )?{_UP_DOWN}(?! to date| event)",
        # the same with a name without a number: r8169 0000:02:00.0 uplink: Link is Down
        r"\b[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d "
        rf"{_NAME}: (?:NIC )?link (?:is )?{_UP_DOWN}(?! to date| event)",
        # IPv6 reports links that come up
        rf"ADDRCONF\(NETDEV_CHANGE\): {_NAME}: link becomes (?P<state>ready)",
    )
)
_FOREIGN = re.compile(
    # Links that are not of the network: disks, buses, displays
    r"\b(?:s?ata\d*|usb|pcie\w*|pciehp|scsi|lpfc|qla\w*|sas\w*|hpsa|megaraid\w*|nvme\w*|rport\S*"
    r"|thunderbolt|typec|drm|i915|hdmi|phy-?\d\S*|snd\w*|mei\w*|firmware|loop|drbd|dmar\d*|slot\(?\d+"
    r"|host\d+|sd[a-z\d]\w*|\w*fcoe|fnic|bnx2fc|iscsi\w*|multipath\w*)\b"
    # Connections of clusters
    r"|\b(?:corosync|knet|tipc|dlm|node\d+)\b"
    # Daemons
    r"|\b(?:systemd[\w-]*|NetworkManager|ifup|ifdown|dh[\w-]+|ntpd|chronyd|avahi[\w-]*|kubelet"
    r"|wpa_supplicant|lldpd|snmpd|sshd|cron)(?:\[\d+\])?:"
    # Repetitions and administrative states of switches
    r"|setHostIntfsOperStatus|PORT_CHANNEL-\d|IF_ADMIN_|link is not ready|link status (?:up|down)"
    r"|\badmin\w* (?:state )?(?:up|down)|up to date|\bfrom (?P<same>up|down) to (?P=same)\b"
    # Bonds: the sum of their links, and links that join them
    r"|\bactive interface up\b|\bEnslaving\b",
    re.IGNORECASE,
)
_CARRIER = (
    # systemd-networkd: ens2: Lost carrier
    re.compile(rf"{_NAME}: (?P<state>lost|gained) carrier", re.IGNORECASE),
    # NetworkManager: device (ens2): carrier: link disconnected
    re.compile(rf"device \({_NAME}\): (?:carrier: )?link (?P<state>(?:dis)?connected)"),
    # teamd: ens2: ethtool-link went down.
    re.compile(rf"{_NAME}: ethtool-link went {_UP_DOWN}"),
    # keepalived: Netlink reports ens2 down
    re.compile(rf"Netlink reports {_NAME} {_UP_DOWN}"),
    # Junos: rpd: EVENT <UpDown> et-0/0/1 index 1 <Up Broadcast Multicast>
    re.compile(rf"EVENT <UpDown> {_PORT} index \d{{1,9}} <(?P<state>Up |)"),
)
"""Messages of daemons, which mostly repeat a message of the kernel."""
_SUBJECT = re.compile(
    r"%\S*(?:UP_?DOWN|LINK_?STATE|(?:IF|LINK|PORT)_(?:UP|DOWN)|LINK(?:UP|DOWN))"
    r"|\b(?:link|interface|carrier|line protocol)\b.{0,80}?\b(?:up|down|lost|off-?line|on-?line)\b"
    r"|\b(?:up|down)\b.{0,20}\b(?:link|interface)\b"
    r"|\bport\b.{0,80}?\b(?:(?:is|now|went|goes|oper|state)\b.{0,20}?\b(?:up|down|off-?line|on-?line)"
    r"|changed state from \w+ to)\b"
    r"|\b(?:lost|lose|gained) link\b",
    re.IGNORECASE,
)
_DOWN = ("down", "off", "lost", "disconnected", "")
_LOGICAL = re.compile(
    r"(?:vlan(?:-?interface)?|bdi|irb|loopback|lo|management|mgmt|mgmteth|oob|vme|fxp|tunnel|nve|vxlan"
    r"|port-channel|po|bundle-ether|ae|bond|team|docker|br|bridge|virbr|veth|vnet|tap|tun|wlan|wlp|usb"
    r"|dummy|cali|flannel|cni|vti|gre|sit|ifb|ppp)(?:[-\d]\S*|[\da-f]{6,})?",
    re.IGNORECASE,
)
"""Interfaces that are not links of the network: logical, virtual, management, wireless."""
_HINT = re.compile(
    r"up|down|ready|carrier|connected|lost|gained|off-?line|on-?line|link_?state|changed state",
    re.I,
)
"""Words that every message of interest contains; most lines have none and are skipped early."""
SUBJECT = "links that go up or down"


def is_it(line: str) -> bool:
    """Return whether a line belongs to a system log."""
    part = _frame(line)
    return bool(part and _names_program(part)) or _SINCE_BOOT.match(line) is not None


def _frame(line: str) -> dict[str, Any] | None:
    """Return time, host (empty if missing) and text of a line; None for a line without a time."""
    found = next((hit for each in _FRAMES if (hit := each.match(line))), None)
    if not found:
        return None
    part = found.groupdict()
    host = part.get("host", "")
    if host.endswith(":"):  # journalctl --no-hostname
        part |= {"host": "", "text": f"{host} {part['text']}"}
    return part


def _names_program(part: dict[str, Any]) -> bool:
    return "host" not in part or _TAG.match(part["text"]) is not None


def read(lines: CountedLines, log: LogContent, year: int, _dates: str = "") -> None:
    """Add the changes of links to `log`; each host has its own calendar, as clocks may differ."""
    calendars: dict[str, Calendar] = {}
    for line in lines:
        part = _frame(line)
        if part is None:
            expected = "a time and a host"
            if _SINCE_BOOT.match(line):
                expected = "a date, as `dmesg -T` or `journalctl -k -o short-iso` print it"
            lines.outside(line, expected)
            continue
        host, text = part.get("host") or "", part["text"]
        calendar = calendars.setdefault(host, Calendar(year))
        if "month" in part:
            own_year = int(part["year"]) if part.get("year") else None
            at_s = calendar.at_s(part["month"], int(part["day"]), part["time"], own_year)
        else:
            at_s = iso_s(part["iso"])
        if at_s is None:
            lines.count_malformed(line, "a date that exists")
            continue
        log.cover(at_s, calendar)
        if not _HINT.search(text):
            _count_other(lines, line, part)
            continue
        state = next((hit for each in _STATES if (hit := each.search(text))), None)
        is_foreign = bool(state and _FOREIGN.search(text[: state.start()] + state["port"]))
        found = state
        if is_foreign or not state:
            found = next((hit for each in _CARRIER if (hit := each.search(text))), None)
        if found and _LOGICAL.fullmatch(found["port"]):
            lines.ignore()
        elif (sent := _OPENSM.search(text)) and (
            changes := opensm_log.changes_of(sent[1], at_s, log)
        ):
            log.changes += changes
            lines.use()
        elif found:
            is_up = found["state"].lower() not in _DOWN
            change = Change(at_s, _port(host, found["port"]), is_up)
            if found is state:
                log.changes.append(change)
                lines.use()
            else:
                log.repeated.append(change)
                lines.ignore()
        elif _SUBJECT.search(text) and not is_foreign and not _FOREIGN.search(text):
            lines.count_malformed(line)
        else:
            _count_other(lines, line, part)


def _count_other(lines: CountedLines, line: str, part: dict[str, Any]) -> None:
    """Count a line about another subject as ignored, or as outside the format."""
    if _names_program(part):
        lines.ignore()
    else:
        lines.outside(line, "the name of a program behind time and host, such as `kernel:`")


def _port(host: str, name: str) -> Port:
    """Return a port; Junos reports a port `et-0/0/12` and its logical unit `et-0/0/12.0`."""
    name = re.sub(r"(?<=/\d)(\d*)\.\d+$", r"\1", name).rstrip(".:")
    return Port(host, name) if host else Port(name, "")
