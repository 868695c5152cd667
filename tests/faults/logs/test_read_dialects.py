"""Dialects of logs: every form of a link change is read, and unknown logs are refused."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from daqloom.faults import FaultsError
from daqloom.faults.logs.change import Change, LogContent, Port
from daqloom.faults.logs.opensm_log import NAMELESS
from daqloom.faults.logs.read import read_logs
from daqloom.faults.statistics.failure import failures_of
from daqloom.faults.statistics.links import Links
from support.command import commands
from support.repository import DATA

_, _, printed, _, refused = commands("faults", "log")
CASES = DATA / "faults" / "cases"


def content(folder: Path, *lines: str, year: int = 2024, dates: str = "") -> LogContent:
    path = folder / "log"
    path.write_text("".join(f"{line}\n" for line in lines))
    return read_logs([path], year, dates=dates)


def failures(*paths: Path, year: int | None = 2024) -> list[tuple[str, float | None]]:
    """Name and duration (whole s) of each failure, in the order of their begins."""
    found = read_logs(list(paths), year)
    links = Links(cables=found.cables, names=found.names)
    return [
        (each.link, None if each.end_s is None else round(each.end_s - each.begin_s))
        for each in failures_of(found, links).failures
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("20-syslogs/bond.log", [("daq02 port eno4", 8), ("daq02 port eno4", 10)]),
        ("20-syslogs/boot.log", [("daq01 port eth0", None)]),
        ("20-syslogs/dmesgT.log", [("ens3f0", 4)]),
        ("20-syslogs/eos.log", [("leaf3 port Ethernet47", 6)]),
        ("20-syslogs/freebsd.log", [("gw0 port igb1", 53)]),
        ("20-syslogs/ib0.log", [("daq03 port ib0", 10), ("daq03 port ens2", 60)]),
        ("20-syslogs/junos.log", [("tor2 port et-0/0/12", 120)]),
        ("20-syslogs/sonic.log", [("leaf9 port Ethernet64", 600)]),
        ("20-syslogs/sonic-old.log", [("tor1 port eth0", 10)]),
        ("21-tables/dur.csv", [("a", 600), ("a", 300), ("a", 300), ("a", 90)]),
        ("21-tables/epoch-ms.csv", [("leaf0 port Ethernet1", 30)]),
        ("21-tables/linkdown.csv", [("leaf0 port Ethernet1/1", 600)]),
        ("21-tables/semi.csv", [("e1", 600)]),
        ("21-tables/status.csv", [("Ethernet1", 600)]),
        (
            "10-opensm-vendor-log/opensm.log",
            [("leaf0 port 3", 600), ("MF0;leaf1:MQM9700/U1 port 61", 300)],
        ),
        ("24-opensm-rotated/joined.log", [("node7 mlx5_0", 300)]),
    ],
)
def test_logs_of_the_field(name: str, expected: list[tuple[str, float | None]]) -> None:
    assert failures(CASES / name) == expected


def test_rotated_logs_are_one_and_a_change_without_a_port_is_counted() -> None:
    folder = CASES / "24-opensm-rotated"
    files = folder / "opensm.log", folder / "opensm.log.1"
    assert failures(*files) == failures(*files[::-1]) == [("node7 mlx5_0", 300)]
    assert read_logs([CASES / "10-opensm-vendor-log/opensm.log"], 2024).lines[NAMELESS] == 1


def test_the_first_sweep_after_a_start_is_no_change(tmp_path: Path) -> None:
    """A restarted subnet manager finds the whole fabric again: a port that is up by then ends the
    failure that was open."""
    found = content(
        tmp_path,
        "Jan 11 09:00:00 100000 [3DA006C0] 0x03 -> OpenSM 3.3.23",
        "Jan 11 09:00:00 200000 [3DA006C0] 0x02 -> state_mgr_report_new_ports: Discovered new port "
        "with GUID:0x0000000000100004 LID range [5,5] of node:node7 mlx5_0",
        "Jan 11 09:00:01 100000 [3DA006C0] 0x02 -> SUBNET UP",
        "Jan 11 10:00:00 000000 [3DA006C0] 0x02 -> drop_mgr_remove_port: Removed port with "
        "GUID:0x0000000000100004 LID range [5, 5] of node:node7 mlx5_0",
        "Jan 11 10:10:00 000000 [3DA006C0] 0x03 -> OpenSM 3.3.23",
        "Jan 11 10:10:01 000000 [3DA006C0] 0x02 -> state_mgr_report_new_ports: Discovered new port "
        "with GUID:0x0000000000100004 LID range [5,5] of node:node7 mlx5_0",
        "Jan 11 10:10:02 000000 [3DA006C0] 0x02 -> SUBNET UP",
    )
    [failure] = failures_of(found, Links()).failures
    assert failure.end_s is not None
    assert failure.end_s - failure.begin_s == 601


AT_S = datetime(2024, 3, 4, 8, tzinfo=UTC).timestamp()
OTHER = "Mar  4 08:00:00 ru7 systemd[1]: Started Daily apt upgrade and clean activities."


@pytest.mark.parametrize(
    ("line", "node", "port", "is_up"),
    [
        ("Mar  4 08:00:00.250000 leaf1 NOTICE swss#orchagent: :- updatePortOperStatus: Port "
         "Ethernet48 oper state set from up to down", "leaf1", "Ethernet48", False),
        ("2024 Mar  4 08:00:00.250000 leaf1 NOTICE swss#orchagent: :- updatePortOperStatus: Port "
         "Ethernet0 oper state set from down to up", "leaf1", "Ethernet0", True),
        ("<6>Mar  4 08:00:00.25 ru7 kernel: [12.3] mlx5_core 0000:3b:00.0 ens3f0: Link down",
         "ru7", "ens3f0", False),
        ("2024-03-04T08:00:00.250+00:00 ru7 kernel: igb 0000:01:00.0 eno1: igb: eno1 NIC Link "
         "is Up 1000 Mbps Full Duplex", "ru7", "eno1", True),
        ("2024-03-04T09:00:00.250+01:00 ru7 kernel: bond0: link status definitely down for "
         "interface ens1f0, disabling it", "ru7", "ens1f0", False),
        ("Mar 04 08:00:00.25 ru7 kernel: IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready",
         "ru7", "eth0", True),
        ("2024 Mar  4 08:00:00 n9k-1 %ETHPORT-5-IF_DOWN_LINK_FAILURE: Interface Ethernet1/1 is "
         "down (Link failure)", "n9k-1", "Ethernet1/1", False),
        ("2024 Mar  4 08:00:00.000 n9k-1 %$ VDC-1 %$ %ETHPORT-5-IF_UP: Interface Ethernet1/2 is "
         "up in mode trunk", "n9k-1", "Ethernet1/2", True),
        ("000123: *Mar  4 08:00:00.000 UTC: %LINK-3-UPDOWN: Interface GigabitEthernet0/1, "
         "changed state to down", "GigabitEthernet0/1", "", False),
        ("Mar  4 2024 08:00:00 asr : %LINEPROTO-5-UPDOWN: Line protocol on Interface "
         "TenGigE0/0/0/1, changed state to Up", "asr", "TenGigE0/0/0/1", True),
        ("Mon Mar  4 08:00:00 2024 kern.info kernel: [   12.345678] mt7530 mdio-bus:1f lan1: "
         "Link is Down", "lan1", "", False),
        ("Mon Mar  4 08:00:00 2024 daemon.notice netifd: Network device 'eth1' link is up",
         "eth1", "", True),
        ("Mar  4 08:00:00 tor2 mib2d[4086]: SNMP_TRAP_LINK_DOWN: ifIndex 551, ifAdminStatus "
         "up(1), ifOperStatus down(2), ifName et-0/0/12.0", "tor2", "et-0/0/12", False),
        ("<189>Mar  4 08:00:00 os10 dn_ifm[5]: Node.1-Unit.1:PRI [event], %IFM_OSTATE_DN: "
         "Interface operational state is down :ethernet1/1/1", "os10", "ethernet1/1/1", False),
        ("2024-03-04T08:00:00+00:00 ce68 %%01IFNET/4/IF_STATE(l)[1]:Interface 100GE1/0/1 has "
         "turned into DOWN state.", "ce68", "100GE1/0/1", False),
        ("Mar  4 08:00:00 ru7 kernel: qede 0000:3b:00.0: [qede_link_update:2424(ens1f0)]Link is "
         "down", "ru7", "ens1f0", False),
        ("Mar  4 08:00:00 ru7 kernel: r8169 0000:02:00.0 uplink: Link is Down",
         "ru7", "uplink", False),
        *(
            (f"Mar  4 08:00:00 ru7 kernel: [131.4] {text}", "ru7", "ens1f0", is_up)
            for text, is_up in (
                ("bond0: (slave ens1f0): link status definitely down, disabling slave", False),
                ("bond0: (slave ens1f0): link status definitely up, 25000 Mbps full duplex", True),
                ("bond0: (slave ens1f0): interface is now down", False),
                ("bond0: interface ens1f0 is now up", True),
            )
        ),
        ("<30>1 2024-03-04T08:00:00Z ru7 kernel - - - mlx5_core 0000:3b:00.0 ens1f0: Link up",
         "ru7", "ens1f0", True),
        ("2024-03-04 08:00:00 ru7 kernel: eno1: Link is Down", "ru7", "eno1", False),
        ("2024-03-04T08:00:00+0000 kernel: eno1: Link is Down", "eno1", "", False),
        ("Mar  4 08:00:00 ru7 kern.info kernel: eth1: link down", "ru7", "eth1", False),
        *(
            (f"Mar  4 08:00:00 sw1 {text}", "sw1", port, is_up)
            for text, port, is_up in (
                ("00077 ports: port 3 is now off-line", "3", False),
                ("00077 ports: port A3 is now on-line", "A3", True),
                ("tmnx: 7 Base: Port 1/1/1 operational state changed to up", "1/1/1", True),
                ("chassisd: Port Ethernet3 went DOWN", "Ethernet3", False),
                ("mgd: port_state: et-0/0/3 -> DOWN", "et-0/0/3", False),
                ("switchd[7]: swp3 lost link", "swp3", False),
                ("TRAPMGR[7]: Link Up: Unit: 1 Slot: 0 Port: 3", "Unit: 1 Slot: 0 Port: 3", True),
                ("%LINK-W-Down:  gi1/0/3", "gi1/0/3", False),
                ("%IFMGR-5-OSTATE_DN: Changed interface state to down: Te 0/1", "Te 0/1", False),
                ("System: Interface ethernet 1/1/1, state up", "1/1/1", True),
                ("kernel: Generic PHY: eth0 - Link is Down", "eth0", False),
                ("kernel: bnx2x 0000:02:00.0 eth0: NIC Copper Link is Up", "eth0", True),
                ("keepalived[3]: Netlink reports eth0 down", "eth0", False),
                ("rpd[7]: EVENT <UpDown> et-0/0/1 index 70 <Broadcast>", "et-0/0/1", False),
                ("rpd[7]: EVENT <UpDown> et-0/0/1.0 index 70 <Up Broadcast>", "et-0/0/1", True),
            )
        ),
        ("Mar  4 08:00:00.000 2024  tor2 mib2d[4086]: SNMP_TRAP_LINK_UP: ifIndex 551, "
         "ifOperStatus up(1), ifName et-0/0/12", "tor2", "et-0/0/12", True),
        ("2024-03-04T08:00:00,000000+00:00 mlx5_core 0000:3b:00.0 ens3f0: Link down",
         "ens3f0", "", False),
        ("Mar  4 08:00:00 sm1 opensm[7]: osm_spst_rcv_process: Switch 0xb1 leaf0 port 3(Port 3) "
         "changed state from ACTIVE to DOWN", "0xb1", "3", False),
        ("Mar  4 08:00:00 ru7 teamd_t0[7]: eno1: ethtool-link went up.", "ru7", "eno1", True),
    ],
)  # fmt: skip
def test_dialects(tmp_path: Path, line: str, node: str, port: str, is_up: bool) -> None:
    found = content(tmp_path, OTHER, line)
    at_s = AT_S + 0.25 * (".25" in line)
    assert found.changes == [Change(at_s, Port(node, port), is_up)]
    assert [found.lines[fate] for fate in ("used", "ignored", "malformed")] == [1, 1, 0]


def test_daemons_count_for_ports_without_reports_of_the_kernel(tmp_path: Path) -> None:
    """`Lost carrier` of a port that the kernel reports too is a repetition."""
    found = content(
        tmp_path,
        "Mar  4 08:00:00 ru7 kernel: mlx5_core 0000:3b:00.0 ens3f0: Link down",
        "Mar  4 08:00:00 ru7 systemd-networkd[812]: ens3f0: Lost carrier",
        "Mar  4 08:01:00 ru7 systemd-networkd[812]: ens9: Lost carrier",
    )
    assert [change.port.port for change in found.changes] == ["ens3f0", "ens9"]
    assert (found.lines["used"], found.lines["ignored"]) == (2, 1)


QUIET = {
    "syslog": [
        OTHER,
        "Mar  4 08:00:01 ru7 CRON[123]: (root) CMD (run-parts /etc/cron.hourly)",
        "Mar  4 08:00:02 ru7 kernel: ata1: SATA link down (SStatus 0 SControl 300)",
        "Mar  4 08:00:03 ru7 kernel: pcieport 0000:3a:00.0: pciehp: Slot(34): Link Down",
        "Mar  4 08:00:04 ru7 sshd[77]: Accepted publickey for root from 192.0.2.1 port 22",
    ],
    "RFC 3339": [
        '2024-03-04T08:00:00.123456+01:00 ru7 rsyslogd: [origin software="rsyslogd"] start',
        "2024-03-04T08:00:01.000000+01:00 ru7 anacron[12]: Job `cron.daily' terminated",
        "<86>1 2024-03-04T08:00:02Z ru7 sudo 17 - - pam_unix(sudo:session): session opened",
    ],
    "repetitions": [
        "Mar  4 08:00:00 ru7 smartd[7]: Device: /dev/sda [SAT], opened",
        "Mar  4 08:00:01 ru7 last message repeated 3 times",
        "Mar  4 08:00:02 ru7 -- MARK --",
    ],
    "switches": [
        "2024 Mar  4 08:00:00 n9k-1 %$ VDC-1 %$ %VSHD-5-VSHD_SYSLOG_CONFIG_I: Configured by root",
        "Mar  4 08:00:00.123456 leaf9 NOTICE swss#orchagent: :- addNeighbor: Created neighbor",
        "Mar  4 08:00:00 leaf3 Cli: %SYS-5-CONFIG_I: Configured from console by admin",
        "Mar  4 2024 08:00:00 ce68 %%01SSH/5/SSH_USER_LOGIN(s)[1]:The user logged in.",
        "Mar  4 08:00:00 gw0 123: *Mar  4 08:00:00.1: %SYS-5-CONFIG_I: Configured from console",
    ],
    "logical and virtual interfaces": [
        f"Jul  7 07:42:49 leaf3 {text}"
        for text in (
            *map(
                "Ebra: %LINK-3-UPDOWN: Interface {}, changed state to down".format,
                ("Vlan100", "Management1", "Loopback0", "Port-Channel7", "Tunnel3"),
            ),
            "mib2d[7]: SNMP_TRAP_LINK_DOWN: ifIndex 550, ifOperStatus down(2), ifName ae0",
            *map("kernel: {}: link down".format, ("docker0", "veth1a2b3c4d", "wlan0", "usb0")),
        )
    ],
    "links that are not of the network, and changes that are none": [
        f"Mar  4 08:00:00 ru7 {text}"
        for text in (
            "kernel: fibre host7: link down",
            "kernel: pci 0000:00:1c.0 Slot4: link down",
            "kernel: drbd r0: link down",
            "kernel: dlm: node3 link down",
            "kernel: sd0: link down",
            "kernel: tipc: Lost link <1.1.1:eth0-1.1.2:eth0> on network plane A",
            "orchagent: :- updatePortOperStatus: Port Ethernet48 oper state set from down to down",
            "%ETHPORT-5-IF_DOWN_ADMIN_DOWN: Interface Ethernet1/1 is down (Administratively down)",
        )
    ],
    "journalctl --no-hostname": ["Mar  4 08:00:00 systemd[1]: Reached target Network."],
    "bonds": [
        f"Mar  4 08:00:00 ru7 kernel: bond0: {text}"
        for text in (
            "(slave ens1f0): Enslaving as a backup interface with an up link",
            "enslaving ens1f0 as an active interface with a down link",
            "(slave ens1f0): link status down for active interface, disabling it in 200 ms",
            "(slave ens1f0): link status up again after 100 ms",
            "active interface up!",
            "now running without any active interface!",
        )
    ],
    "OpenSM": [
        "Jan 11 09:00:00 100000 [3DA006C0] 0x03 -> OpenSM 3.3.23",
        "Jan 11 09:00:01 100000 [3DA006C0] 0x02 -> SUBNET UP",
        "Jan 11 09:00:01 200000 [3DA006C0] 0x02 -> osm_ucast_mgr_process: minhop tables configured",
    ],
    "counters": [
        "## Summary: 42 nodes checked, 0 bad nodes found",
        "##          98 ports checked, 0 ports have errors beyond threshold",
        "# ibqueryerrors",
    ],
    "counters without an error": [
        "## Summary: 42 nodes checked, 0 bad nodes found",
        "##          98 ports checked, 0 ports have errors beyond threshold",
    ],
    "a table": ["# made by a script", "", "time,port,state"],
}


@pytest.mark.parametrize("kind", QUIET)
def test_a_quiet_log_has_no_failures_and_counts_its_lines(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "quiet.log"
    path.write_text("\n".join(QUIET[kind]) + "\n")
    assert f"0 lines used, {len(QUIET[kind])} ignored, 0 malformed" in printed(path)


STRANGE = {
    "an unknown dialect": ["Mar  4 08:00:00 sw1 linkd: the link of slot-3/7 has gone down"] * 3,
    "an unknown mnemonic": ["Mar  4 08:00:00 sw1 %XYZ-3-LINK_DOWN: 0/7"] * 3,
    "mostly an unknown dialect": [
        "Mar  4 08:00:00 sw1 kernel: eth0: Link is Down",
        *["Mar  4 08:00:00 sw1 linkd: the link of slot-3/7 has gone down"] * 2,
    ],
    "mostly no syslog": [
        "Mar  4 08:00:00 sw1 kernel: eth0: Link is Down",
        *["at org.example.Class.method(Class.java:12)"] * 3,
    ],
    "times since boot": ["[  127.468853] mlx5_core 0000:3b:00.0 ens3f0: Link down"],
    "an unknown form of OpenSM": [
        "Mar 04 09:00:00 000100 [33333700] 0x02 -> osm_x: Port 0xb1/3 changed state to DOWN"
    ],
    "damaged ends of OpenSM": [
        "Nov 25 18:54:32 249264 [CA286C0] 0x08 -> ni_rcv_set_links: Creating new link between:",
        "    node 0x200000, prt number 1 and",
        "    node 0x100000, prt number 1",
    ],
    "one row, of a decimal comma": ["time,port,downtime", '1000,leaf0/1,"1,5"'],
    "rows of other columns": ["time,port,state", "monday,a,down", "tuesday,a,up"],
    "unknown states": ["time,port,state", "1000,a,wobbly", "1001,a,fine"],
    "unknown counters": ['Errors for 0xb1 "leaf0"', *["   GUID 0xb1 port 1: Symbol=3"] * 2],
}


@pytest.mark.parametrize("kind", STRANGE)
def test_a_log_that_is_not_understood_is_refused(tmp_path: Path, kind: str) -> None:
    """Exit code 2, and one sentence with the first line and the known kinds."""
    path = tmp_path / "strange.log"
    path.write_text("\n".join(STRANGE[kind]) + "\n")
    sentence = refused(path)
    assert "were not understood, the first is line " in sentence
    assert "; supported are OpenSM's log, syslog" in sentence


FOREIGN = {
    "dpkg": [
        "2024-03-04 08:00:00 status installed libc6:amd64 2.36",
        "2024-03-04 08:00:00 startup archives unpack",
    ],
    "alternatives": ["update-alternatives 2024-03-04 08:00:00: run with --quiet --install"],
    "apt": ["Start-Date: 2024-03-04  08:00:00", "Commandline: apt-get install link-up"],
    "boot": ["[  OK  ] Started Network Manager.", "[FAILED] Failed to start link down."],
    "nginx, access": ['192.0.2.1 - - [04/Mar/2024:08:00:00 +0000] "GET /down HTTP/1.1" 200 612'],
    "nginx, errors": ["2024/03/04 08:00:00 [error] 7#7: *1 upstream link is down"],
    "PostgreSQL": [
        "2024-03-04 08:00:00.123 UTC [7] LOG:  database system is ready",
        "2024-03-04 08:00:00.123 UTC LOG:  link eth0 is down",
    ],
    "Python": [
        "2024-03-04 08:00:00,123 INFO daq.app link eth3 went down",
        "2024-03-04 08:00:00,123 - daq.app - INFO - link eth3 is up",
        "2024-03-04 08:00:00 INFO daq.app: link eth3 is up",
        "2024-03-04 08:00:00 [INFO] daq.app: link eth3 is up",
    ],
    "Java": ["2024-03-04 08:00:00.123  INFO 7 --- [main] org.example.App: link eth3: Link up"],
    "dnf": ["2024-03-04T08:00:00+0100 SUBDEBUG Installed: kernel-core"],
    "Slurm": ["[2024-03-04T08:00:00.123] error: Node n12 now DOWN"],
    "Kubernetes": ["2024-03-04T08:00:00.123456789Z stdout F eth0 is up"],
    "MySQL": ["2024-03-04T08:00:00.123456Z 0 [System] [MY-010116] [Server] ready"],
    "Munge": ["2024-03-04 08:00:00 +0000 Notice:    Running on host"],
    "Open vSwitch": ["2024-03-04T08:00:00.123Z|00001|bridge|INFO|link state down"],
    "OpenStack": ["2024-03-04 08:00:00.123 7 INFO nova.compute [-] eth0 is up"],
    "fontconfig": ["/usr/share/fonts: caching, new cache contents: 0 fonts, 3 dirs"],
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_logs_of_other_programs_are_refused(tmp_path: Path, kind: str) -> None:
    """A date alone makes no syslog: the answer is no count of zero failures."""
    for line in FOREIGN[kind]:
        with pytest.raises(FaultsError, match="is no supported log"):
            content(tmp_path, *[line] * 3)
    with pytest.raises(FaultsError, match=r"no supported log|were not understood"):
        content(tmp_path, "2024-03-04T08:00:00Z ru7 cron[7]: started", *FOREIGN[kind] * 4)


def test_malformed_lines_are_left_out(tmp_path: Path) -> None:
    found = content(
        tmp_path,
        "Mar  4 08:00:00 sw1 kernel: eth0: Link is Down",
        "Mar  4 08:00:10 sw1 kernel: eth0: Link is Up",
        "Mar  4 08:00:20 sw1 linkd: the link of slot-3/7 has gone down",
    )
    assert found.lines == {"used": 2, "malformed": 1, "clock step": 0}
    assert found.first_malformed.startswith('line 3: "Mar  4 08:00:20 sw1 linkd')


@pytest.mark.parametrize(
    ("rows", "dates", "begin"),
    [
        (["13/03/2024 10:00:00,a,60", "02/03/2024 10:00:00,a,60"], "", "2024-03-13T10:00:00"),
        (["02/03/2024 10:00:00,a,60", "03/13/2024 10:00:00,a,60"], "", "2024-02-03T10:00:00"),
        (["02/03/2024 10:00,a,60"], "day-first", "2024-03-02T10:00:00"),
        (["02/03/2024 1:00 PM,a,60"], "month-first", "2024-02-03T13:00:00"),
        (["02.03.2024 10:00:00,a,60"], "", "2024-03-02T10:00:00"),
        (["2024/03/02 10:00:00,a,60"], "", "2024-03-02T10:00:00"),
        (["02-Mar-2024 10:00:00,a,60"], "", "2024-03-02T10:00:00"),
        (["04/04/2024 10:00:00,a,60"], "", "2024-04-04T10:00:00"),
        (["1709373600,a,60"], "", "2024-03-02T10:00:00"),
        (["1709373600000,a,60"], "", "2024-03-02T10:00:00"),
        (["1709373600000000,a,60"], "", "2024-03-02T10:00:00"),
        (["1709373600000000000,a,60"], "", "2024-03-02T10:00:00"),
    ],
)
def test_dates(tmp_path: Path, rows: list[str], dates: str, begin: str) -> None:
    outage = content(tmp_path, "start_time,interface,duration_s", *rows, dates=dates).outages[0]
    assert outage.begin_s == datetime.fromisoformat(begin).replace(tzinfo=UTC).timestamp()
    assert outage.end_s == outage.begin_s + 60


def test_dates_are_those_of_their_line_and_of_one_order(tmp_path: Path) -> None:
    """Line 3 has two readings until line 4 has one; its duration makes no sense."""
    rows = "13/03/2024 9:00,a,60", "02/03/2024 9:00,a,60"
    found = content(tmp_path, "time,port,duration", rows[1], "02/03/2024 9:00,a,soon", *rows)
    assert found.first_malformed.startswith('line 3: "02/03/2024 9:00,a,soon"')
    with pytest.raises(FaultsError, match=r"such as 02/03/2024 10:00:00, can be read in two ways"):
        content(tmp_path, "time,port,duration", "02/03/2024 10:00:00,a,60")
    rows = ("# from ifOperStatus", "", "time,port,event", "1000,leaf0/1,2", "1060,leaf0/1,1")
    down, up = content(tmp_path, *rows).changes
    assert (down.is_up, up.is_up, up.at_s - down.at_s) == (False, True, 60)


def test_counters_are_a_table_and_a_network_without_the_ports_is_refused() -> None:
    path = CASES / "11-ibqueryerrors" / "ibqueryerrors.txt"
    shown = printed(path)
    assert "failures of links" not in shown
    rows = [line.split("  ")[0] for line in shown.splitlines() if " port " in line]
    assert rows == ["leaf0 port 6", "leaf0 port 1", "leaf0 port 5", "nodeA mlx4_0 port 1"]
    for text in ("LinkDownedCounter", "PortXmitDiscards", "VL15Dropped", "65,535"):
        assert text in shown
    path = CASES / "20-syslogs" / "eos.log"
    sentence = refused(path, "--network", "lhcb")
    assert "the network has none of the ports of the logs, and no leaf3 port" in sentence
