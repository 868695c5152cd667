"""Controller with os-ken, as a program: FILE, then options of os-ken.

It adds entries and a meter to a switch and requests their counts until frames have used all of
them. Then it writes the counts to FILE as JSON.
"""

import json
import os
import sys

from os_ken import cfg
from os_ken.base.app_manager import AppManager, OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_3

PORTS = (5000, 5001, 5002)
"""UDP ports whose frames go into a queue, through a meter, and nowhere, in this order."""


class Controller(OSKenApp):
    OFP_VERSIONS = (ofproto_v1_3.OFP_VERSION,)

    def __init__(self, *words, **keys):
        super().__init__(*words, **keys)
        self.found = {}

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def has_features(self, event):
        path = event.msg.datapath
        make, openflow = path.ofproto_parser, path.ofproto
        self.found["datapath"] = event.msg.datapath_id
        band = make.OFPMeterBandDrop(rate=1, burst_size=3)
        flags = openflow.OFPMF_PKTPS | openflow.OFPMF_BURST
        path.send_msg(make.OFPMeterMod(path, openflow.OFPMC_ADD, flags, 7, [band]))
        out = make.OFPActionOutput(2)
        for port, instructions in (
            (5000, [self.apply(path, make.OFPActionSetQueue(1), out)]),
            (5001, [make.OFPInstructionMeter(7, openflow.OFPIT_METER), self.apply(path, out)]),
            (5002, []),
        ):
            match = make.OFPMatch(eth_type=0x0800, ip_proto=17, udp_dst=port)
            path.send_msg(
                make.OFPFlowMod(
                    path, cookie=port, priority=9, match=match, instructions=instructions
                )
            )
        path.send_msg(make.OFPGroupMod(path, openflow.OFPGC_ADD, openflow.OFPGT_ALL, 1, []))
        path.send_msg(make.OFPBarrierRequest(path))

    @staticmethod
    def apply(path, *actions):
        make, openflow = path.ofproto_parser, path.ofproto
        return make.OFPInstructionActions(openflow.OFPIT_APPLY_ACTIONS, list(actions))

    @set_ev_cls(ofp_event.EventOFPErrorMsg, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def was_refused(self, event):
        self.found.setdefault("errors", []).append([event.msg.type, event.msg.code])

    @set_ev_cls(ofp_event.EventOFPBarrierReply, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def has_done_all(self, event):
        self.ask(event.msg.datapath)

    @staticmethod
    def ask(path):
        path.send_msg(path.ofproto_parser.OFPFlowStatsRequest(path))

    @set_ev_cls(ofp_event.EventOFPFlowStatsReply, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def has_counted(self, event):
        path = event.msg.datapath
        counts = {flow.cookie: [flow.packet_count, flow.byte_count] for flow in event.msg.body}
        if any(counts[port][0] < 100 for port in PORTS):
            self.ask(path)
            return
        self.found["flows"] = counts
        path.send_msg(path.ofproto_parser.OFPMeterStatsRequest(path))

    @set_ev_cls(ofp_event.EventOFPMeterStatsReply, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def has_metered(self, event):
        [meter] = event.msg.body
        self.found["meter"] = {
            "id": meter.meter_id,
            "flows": meter.flow_count,
            "packets": meter.packet_in_count,
            "dropped": meter.band_stats[0].packet_band_count,
        }
        with open(sys.argv[1], "w") as file:
            json.dump(self.found, file)
        os._exit(0)

    @set_ev_cls(ofp_event.EventOFPPortDescStatsReply, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def has_ports(self, event):  # for which os-ken asks
        self.found["ports"] = [[port.port_no, port.name.decode()] for port in event.msg.body]


if __name__ == "__main__":
    cfg.CONF(sys.argv[2:], project="os_ken")
    AppManager.run_apps(["support.openflow_controller"])
