"""Answers to multipart requests: descriptions and counters of the switch."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from daqloom.softswitch.configure import MOST_ENTRIES
from daqloom.softswitch.running import RunningSwitch
from daqloom.softswitch.status import PortStatus, RingStatus
from daqloom_sdn.openflow import messages
from daqloom_sdn.openflow.codec import Layout, Record
from daqloom_sdn.openflow.errors import Error, RefusedError
from daqloom_sdn.openflow.match import FIELDS
from daqloom_sdn.openflow.messages import (
    ALL_METERS,
    ALL_QUEUES,
    ALL_TABLES,
    PortNo,
    PortState,
    Property,
)
from daqloom_sdn.openflow.meters import KNOWN_FLAGS
from daqloom_sdn.openflow.table import TABLE, Entry, FlowTable, duration

UNKNOWN = 2**64 - 1
"""Value of a counter that the switch does not have."""
NAME_BYTES = 15

Answer = Callable[[Record], Iterable[Record]]


class Statistics:
    """Answers to multipart requests about one switch."""

    def __init__(self, running: RunningSwitch, table: FlowTable) -> None:
        self._table, self._status = table, running.status
        self._meter_counts = running.meter_counts
        self._answers: dict[int, tuple[Layout, Answer]] = {
            0: (messages.NOTHING, self._description),
            1: (messages.FLOW_REQUEST, self._flows),
            2: (messages.FLOW_REQUEST, self._aggregate),
            3: (messages.NOTHING, self._tables),
            4: (messages.PORT_REQUEST, self._ports),
            5: (messages.QUEUE_REQUEST, self._queues),
            9: (messages.METER_REQUEST, self._meters),
            10: (messages.METER_REQUEST, self._meter_configs),
            11: (messages.NOTHING, self._meter_features),
            12: (messages.ANYTHING, self._table_features),
            13: (messages.NOTHING, lambda _: self.port_descriptions()),
        }
        """Layout of the request's body, and function for the answer, by request type (OFPMP_…)."""

    def parts(self, kind: int, body: bytes) -> Iterator[bytes]:
        """Yield the parts of an answer's body; parts may be split over messages. Raises
        RefusedError."""
        if kind not in self._answers:
            raise RefusedError(Error.OFPBRC_BAD_MULTIPART)
        layout, answer = self._answers[kind]
        for record in answer(layout.decode(body)):
            yield record.layout.write(record)

    def port_descriptions(self) -> list[Record]:
        """Return the descriptions of all ports."""
        return [_port(number, port) for number, port in enumerate(self._status().ports, 1)]

    def _description(self, _: Record) -> Iterator[Record]:
        yield messages.DESCRIPTION(
            mfr_desc=b"daqloom",
            hw_desc=platform.machine().encode(),
            sw_desc=b"daqloom switch",
            serial_num=b"None",
            dp_desc=self._status().title.encode()[:255],
        )

    def _flows(self, request: Record) -> Iterator[Record]:
        now_s = self._table.clock()
        for entry, (packets, size) in self._table.counts(self._selection(request)):
            yield messages.FLOW_STATS(
                **entry.fields,
                **duration(now_s - entry.since_s),
                table_id=TABLE,
                flags=entry.message.flags,
                instructions=entry.message.instructions,
                packet_count=packets,
                byte_count=size,
            )

    def _aggregate(self, request: Record) -> Iterator[Record]:
        counts = [counts for _, counts in self._table.counts(self._selection(request))]
        yield messages.AGGREGATE(
            packet_count=sum(packets for packets, _ in counts),
            byte_count=sum(size for _, size in counts),
            flow_count=len(counts),
        )

    def _selection(self, request: Record) -> list[Entry]:
        is_ours = request.table_id in (TABLE, ALL_TABLES)
        return list(self._table.select(request)) if is_ours else []

    def _tables(self, _: Record) -> Iterator[Record]:
        counts = self._table.counts(self._table.entries())
        yield messages.TABLE_STATS(
            table_id=TABLE,
            active_count=len(self._table),
            lookup_count=sum(port.frames["packets"] for port in self._status().ports),
            matched_count=sum(packets for _, (packets, _) in counts),
        )

    def _table_features(self, request: Record) -> Iterator[Record]:
        if request.data:
            raise RefusedError(Error.OFPBRC_EPERM)  # features cannot be changed
        instructions = _ids(messages.ELEMENT_ID(type=kind) for kind in messages.INSTRUCTION.layouts)
        actions = _ids(messages.ELEMENT_ID(type=kind) for kind in messages.ACTION.layouts)
        fields = _ids(
            messages.FIELD_ID(field_and_mask=number << 1, width=field.width)
            for number, field in FIELDS.items()
        )
        properties = {
            Property.INSTRUCTIONS: instructions,
            Property.NEXT_TABLES: b"",
            Property.WRITE_ACTIONS: actions,
            Property.APPLY_ACTIONS: actions,
            Property.MATCH: fields,
            Property.WILDCARDS: fields,
            Property.WRITE_SETFIELD: b"",
            Property.APPLY_SETFIELD: b"",
        }
        yield messages.TABLE_FEATURES(
            table_id=TABLE,
            name=b"table",
            max_entries=MOST_ENTRIES,
            properties=tuple(
                messages.PROPERTY(type=kind, ids=ids) for kind, ids in properties.items()
            ),
        )

    def _ports(self, request: Record) -> list[Record]:
        status = self._status()
        found = [
            _port_stats(number, port, status.time_s)
            for number, port in enumerate(status.ports, 1)
            if request.port_no in (PortNo.ANY, number)
        ]
        if not found and request.port_no != PortNo.ANY:
            raise RefusedError(Error.OFPBRC_BAD_PORT)
        return found

    def _queues(self, request: Record) -> list[Record]:
        status = self._status()
        numbers = {port.name: number for number, port in enumerate(status.ports, 1)}
        if request.port_no not in (PortNo.ANY, *numbers.values()):
            raise RefusedError(Error.OFPQOFC_BAD_PORT)
        found = []
        next_queue = dict.fromkeys(numbers, 1)
        for ring in status.rings:
            queue = 0  # the rings of ports, for frames without a ring of their own
            if not ring.is_of_port:
                queue = next_queue[ring.port]
                next_queue[ring.port] += 1
            port = numbers[ring.port]
            if request.port_no in (PortNo.ANY, port) and request.queue_id in (ALL_QUEUES, queue):
                found.append(_queue_stats(port, queue, ring, status.time_s))
        if not found and request.queue_id != ALL_QUEUES:
            raise RefusedError(Error.OFPQOFC_BAD_QUEUE)
        return found

    def _meters(self, request: Record) -> Iterator[Record]:
        numbers, now_s = self._meter_numbers(request), self._table.clock()
        uses = Counter(entry.treatment.meter for entry in self._table.entries())
        counted = self._meter_counts([number - 1 for number in numbers])
        for number, (packets, size, dropped, dropped_size) in zip(numbers, counted, strict=True):
            band = messages.BAND_STATS(packet_band_count=dropped, byte_band_count=dropped_size)
            yield messages.METER_STATS(
                meter_id=number,
                flow_count=uses[number],
                packet_in_count=packets,
                byte_in_count=size,
                **duration(now_s - self._table.meters.by_number[number].since_s),
                bands=(band,),
            )

    def _meter_configs(self, request: Record) -> Iterator[Record]:
        for number in self._meter_numbers(request):
            message = self._table.meters.by_number[number].message
            yield messages.METER_CONFIG(flags=message.flags, meter_id=number, bands=message.bands)

    def _meter_features(self, _: Record) -> Iterator[Record]:
        yield messages.METER_FEATURES(
            max_meter=self._table.meters.most,
            band_types=1 << messages.DROP_BAND.type,
            capabilities=KNOWN_FLAGS,
            max_bands=1,
        )

    def _meter_numbers(self, request: Record) -> list[int]:
        """Return the numbers of the meters that a request selects. Raises RefusedError."""
        number, known = request.meter_id, self._table.meters.by_number
        if number == ALL_METERS:
            return sorted(known)
        if number not in known:
            raise RefusedError(Error.OFPMMFC_UNKNOWN_METER)
        return [number]


def _ids(records: Iterable[Record]) -> bytes:
    return b"".join(record.layout.write(record) for record in records)


def _port(number: int, port: PortStatus) -> Record:
    return messages.PORT(
        port_no=number,
        hw_addr=b"\2\0\0\0" + number.to_bytes(2),
        name=port.name.encode()[:NAME_BYTES],
        state=PortState.LIVE if port.is_up else PortState.LINK_DOWN,
    )


def _port_stats(number: int, port: PortStatus, time_s: float) -> Record:
    counts = port.device_counts
    return messages.PORT_STATS(
        port_no=number,
        rx_packets=counts["received"],
        tx_packets=counts["sent"],
        rx_bytes=counts["received_bytes"],
        tx_bytes=counts["sent_bytes"],
        rx_dropped=port.missed + port.dropped,
        tx_dropped=UNKNOWN,
        rx_errors=counts["errors"],
        tx_errors=UNKNOWN,
        rx_frame_err=UNKNOWN,
        rx_over_err=port.missed,
        rx_crc_err=UNKNOWN,
        **duration(time_s),
    )


def _queue_stats(port: int, queue: int, ring: RingStatus, time_s: float) -> Record:
    return messages.QUEUE_STATS(
        port_no=port,
        queue_id=queue,
        tx_bytes=ring.counts["bytes"] - ring.bytes,
        tx_packets=ring.counts["packets"] - ring.packets,
        tx_errors=ring.dropped,
        **duration(time_s),
    )
