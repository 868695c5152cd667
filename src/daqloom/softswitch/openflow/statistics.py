"""Answers to multipart requests: what the switch is, has and has counted."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pyof.foundation.base import GenericStruct
from pyof.foundation.basic_types import FixedTypeList, UBInt64
from pyof.v0x04.asynchronous.error_msg import (
    BadRequestCode,
    MeterModFailedCode,
    QueueOpFailedCode,
)
from pyof.v0x04.common.port import Port, PortNo, PortState
from pyof.v0x04.controller2switch.common import MultipartType
from pyof.v0x04.controller2switch.meter_mod import (
    Meter,
    MeterBandDrop,
    MeterBandType,
)
from pyof.v0x04.controller2switch.multipart_reply import (
    AggregateStatsReply,
    BandStats,
    Desc,
    FlowStats,
    ListOfBandStats,
    MeterConfig,
    MeterFeatures,
    MeterStats,
    PortStats,
    QueueStats,
    TableStats,
)
from pyof.v0x04.controller2switch.table_mod import Table

from daqloom.softswitch.openflow.features import features_of
from daqloom.softswitch.openflow.meters import KNOWN_FLAGS
from daqloom.softswitch.openflow.refused import RefusedError
from daqloom.softswitch.openflow.table import TABLE, FlowTable, duration
from daqloom.softswitch.status import PortStatus, RingStatus, SwitchStatus

UNKNOWN = 2**64 - 1
"""A count that the switch does not have."""
ALL_QUEUES = 0xFFFFFFFF
NAME_BYTES = 15


class Statistics:
    """What a switch answers. `status`: reads its state; `meter_counts`: packets, bytes, and those
    of both that were dropped, of meters by their numbers in the engine."""

    def __init__(
        self,
        table: FlowTable,
        status: Callable[[], SwitchStatus],
        meter_counts: Callable[[list[int]], list[tuple[int, int, int, int]]],
    ) -> None:
        self._table, self._status, self._meter_counts = table, status, meter_counts

    def of(self, request: Any) -> Iterator[bytes]:
        """Yield the parts of the body of an answer, which may be in different messages. Raises
        RefusedError."""
        answers: dict[MultipartType, Callable[[Any], Iterable[GenericStruct]]] = {
            MultipartType.OFPMP_DESC: self._description,
            MultipartType.OFPMP_FLOW: self._flows,
            MultipartType.OFPMP_AGGREGATE: self._aggregate,
            MultipartType.OFPMP_TABLE: self._tables,
            MultipartType.OFPMP_TABLE_FEATURES: self._table_features,
            MultipartType.OFPMP_PORT_STATS: self._ports,
            MultipartType.OFPMP_PORT_DESC: self._port_descriptions,
            MultipartType.OFPMP_QUEUE: self._queues,
            MultipartType.OFPMP_METER: self._meters,
            MultipartType.OFPMP_METER_CONFIG: self._meter_configs,
            MultipartType.OFPMP_METER_FEATURES: self._meter_features,
        }
        answer = answers.get(request.multipart_type)
        if answer is None:
            raise RefusedError(BadRequestCode.OFPBRC_BAD_MULTIPART)
        for struct in answer(request.body):
            yield struct.pack()

    def port_descriptions(self) -> list[Port]:
        """Return all ports."""
        return [_port(number, port) for number, port in enumerate(self._status().ports, 1)]

    def _description(self, _: Any) -> list[GenericStruct]:
        return [
            Desc(
                mfr_desc="daqloom",
                hw_desc=platform.machine(),
                sw_desc="daqloom switch",
                serial_num="None",
                dp_desc=self._status().title[:255],
            )
        ]

    def _flows(self, request: Any) -> Iterator[GenericStruct]:
        if not _is_ours(request):
            return
        now_s = self._table.clock()
        for entry, (packets, size) in self._table.counts(self._table.selected(request)):
            match, instructions = entry.said
            flow = FlowStats(
                table_id=TABLE,
                **duration(now_s - entry.since_s),
                priority=entry.priority,
                idle_timeout=entry.idle_timeout_s,
                hard_timeout=entry.hard_timeout_s,
                flags=entry.flags,
                cookie=entry.cookie,
                packet_count=packets,
                byte_count=size,
                match=match,
                instructions=instructions,
            )
            flow.length = 0
            flow.length = len(flow.pack())
            yield flow

    def _aggregate(self, request: Any) -> list[GenericStruct]:
        entries = self._table.selected(request) if _is_ours(request) else ()
        counts = [counts for _, counts in self._table.counts(entries)]
        return [
            AggregateStatsReply(
                packet_count=sum(packets for packets, _ in counts),
                byte_count=sum(size for _, size in counts),
                flow_count=len(counts),
            )
        ]

    def _tables(self, _: Any) -> list[GenericStruct]:
        status = self._status()
        looked_up = sum(port.frames["packets"] for port in status.ports)
        matched = sum(packets for _, (packets, _) in self._table.counts(self._table.entries()))
        return [
            TableStats(
                table_id=TABLE,
                active_count=len(self._table),
                lookup_count=looked_up,
                matched_count=matched,
            )
        ]

    def _table_features(self, request: Any) -> list[GenericStruct]:
        if request:
            raise RefusedError(BadRequestCode.OFPBRC_EPERM)  # it cannot be changed
        return [features_of(TABLE)]

    def _ports(self, request: Any) -> list[GenericStruct]:
        status = self._status()
        return [
            _port_stats(number, port, status.time_s)
            for number, port in enumerate(status.ports, 1)
            if request.port_no.value in (PortNo.OFPP_ANY, number)
        ] or _none(request.port_no.value, BadRequestCode.OFPBRC_BAD_PORT)

    def _port_descriptions(self, _: Any) -> list[GenericStruct]:
        return list(self.port_descriptions())

    def _queues(self, request: Any) -> list[GenericStruct]:
        status = self._status()
        numbers = {port.name: number for number, port in enumerate(status.ports, 1)}
        if request.port_no.value not in (PortNo.OFPP_ANY, *numbers.values()):
            raise RefusedError(QueueOpFailedCode.OFPQOFC_BAD_PORT)
        found: list[GenericStruct] = []
        next_queue = dict.fromkeys(numbers, 1)
        for ring in status.rings:
            queue = 0  # those of ports without a ring of their own
            if not ring.is_of_port:
                queue = next_queue[ring.port]
                next_queue[ring.port] += 1
            if request.port_no.value in (
                PortNo.OFPP_ANY,
                numbers[ring.port],
            ) and request.queue_id.value in (ALL_QUEUES, queue):
                found.append(_queue_stats(numbers[ring.port], queue, ring, status.time_s))
        if not found and request.queue_id.value != ALL_QUEUES:
            raise RefusedError(QueueOpFailedCode.OFPQOFC_BAD_QUEUE)
        return found

    def _meters(self, request: Any) -> Iterator[GenericStruct]:
        numbers, now_s = self._numbers(request), self._table.clock()
        uses = self._table.uses_of_meters()
        counted = self._meter_counts([number - 1 for number in numbers])
        for number, (packets, size, dropped, dropped_size) in zip(numbers, counted, strict=True):
            age_s = now_s - self._table.meters.by_number[number].since_s
            band = BandStats(packet_band_count=dropped, byte_band_count=dropped_size)
            stats = MeterStats(
                meter_id=number,
                flow_count=uses[number],
                packet_in_count=packets,
                byte_in_count=size,
                **duration(age_s),
                band_stats=ListOfBandStats([band]),
            )
            stats.update_length()
            yield stats

    def _meter_configs(self, request: Any) -> list[GenericStruct]:
        found: list[GenericStruct] = []
        for number in self._numbers(request):
            meter = self._table.meters.by_number[number]
            band = MeterBandDrop(rate=meter.rate, burst_size=meter.burst)
            config = MeterConfig(flags=meter.flags, meter_id=number, bands=_bands(band))
            config.length = 8 + len(band.pack())
            found.append(config)
        return found

    def _meter_features(self, _: Any) -> list[GenericStruct]:
        return [
            MeterFeatures(
                max_meter=self._table.meters.most,
                band_types=1 << MeterBandType.OFPMBT_DROP,
                capabilities=KNOWN_FLAGS,
                max_bands=1,
                max_color=0,
            )
        ]

    def _numbers(self, request: Any) -> list[int]:
        """Return the numbers of the meters that a request means. Raises RefusedError."""
        number, known = request.meter_id.value, self._table.meters.by_number
        if number == Meter.OFPM_ALL:
            return sorted(known)
        if number not in known:
            raise RefusedError(MeterModFailedCode.OFPMMFC_UNKNOWN_METER)
        return [number]


def _is_ours(request: Any) -> bool:
    return request.table_id.value in (TABLE, Table.OFPTT_ALL)


def _none(number: int, code: Any) -> list[GenericStruct]:
    if number != PortNo.OFPP_ANY:
        raise RefusedError(code)
    return []


def _port(number: int, port: PortStatus) -> Port:
    return Port(
        port_no=number,
        hw_addr=f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}",
        name=port.name[:NAME_BYTES],
        config=0,
        state=PortState.OFPPS_LIVE if port.is_up else PortState.OFPPS_LINK_DOWN,
        curr=0,
        advertised=0,
        supported=0,
        peer=0,
        curr_speed=0,
        max_speed=0,
    )


def _port_stats(number: int, port: PortStatus, time_s: float) -> PortStats:
    counts = port.device_counts
    return PortStats(
        port_no=number,
        rx_packets=counts["received"],
        tx_packets=counts["sent"],
        rx_bytes=counts["received_bytes"],
        tx_bytes=counts["sent_bytes"],
        rx_dropped=port.missed + port.dropped,
        tx_dropped=UBInt64(UNKNOWN),
        rx_errors=counts["errors"],
        tx_errors=UBInt64(UNKNOWN),
        rx_frame_err=UBInt64(UNKNOWN),
        rx_over_err=port.missed,
        rx_crc_err=UBInt64(UNKNOWN),
        collisions=0,
        **duration(time_s),
    )


def _queue_stats(port: int, queue: int, ring: RingStatus, time_s: float) -> QueueStats:
    return QueueStats(
        port_no=port,
        queue_id=queue,
        tx_bytes=ring.counts["bytes"] - ring.bytes,
        tx_packets=ring.counts["packets"] - ring.packets,
        tx_errors=ring.dropped,
        **duration(time_s),
    )


def _bands(band: MeterBandDrop) -> FixedTypeList:
    bands = FixedTypeList(pyof_class=MeterBandDrop)
    bands.append(band)
    return bands
