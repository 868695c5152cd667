"""Server for OVSDB (RFC 7047) in a thread, which tests can make silent or faulty."""

import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from daqloom_sdn.ovsdb import COLUMNS, SCHEMA

REFERS = {"bridges": "Bridge", "ports": "Port", "interfaces": "Interface", "qos": "QoS"}
BRIDGE, PORT, QOS, QUEUE, ROOT = (f"00000000-0000-4000-8000-00000000000{n}" for n in range(1, 6))


def column(name: str, kinds: tuple[str, ...]) -> dict[str, Any]:
    """Return the schema of a column whose key and value have the types `kinds`."""
    types: list[Any] = [
        {"type": "uuid", "refTable": REFERS.get(name, "Queue")} if kind == "uuid" else kind
        for kind in kinds
    ]
    if name in ("name", "next_cfg", "cur_cfg"):
        return {"type": types[0]}
    found: dict[str, Any] = {"key": types[0], "min": 0, "max": "unlimited"}
    return {"type": found | ({"value": types[1]} if len(types) > 1 else {})}


def schema() -> dict[str, Any]:
    """Return a database schema with the columns that the software switch uses."""
    tables = {
        table: {"columns": {name: column(name, kinds) for name, kinds in columns.items()}}
        for table, columns in COLUMNS.items()
    }
    return {"name": SCHEMA, "version": "8.0.0", "tables": tables}


class OvsdbServer:
    """Server with a bridge `daq` whose port `down` has a queue for each of `rates`. It does not
    answer the methods `silent`. `schemas` are by database name."""

    def __init__(
        self,
        path: Path,
        rates: dict[int, str] | None = None,
        silent: tuple[str, ...] = (),
        schemas: dict[str, Any] | None = None,
    ) -> None:
        self.remote = f"unix:{path}"
        self.silent, self.schemas = silent, {SCHEMA: schema()} | (schemas or {})
        self.methods: list[str] = []
        self._rates = rates or {}
        self._clients: list[tuple[socket.socket, Any]] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        for client, _ in self._clients:
            client.close()

    def set(self, number: int, rate: str) -> None:
        """Change the rate of a queue, as `ovs-vsctl` does, and notify the clients."""
        row = {"other_config": ["map", [["max-rate", rate]]]}
        for client, watched in self._clients:
            if watched:
                update = {"Queue": {_queue(number): {"new": row, "old": {}}}}
                _send(client, {"method": "update", "params": [watched[0], update], "id": None})

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        watched: list[Any] = []
        self._clients.append((client, watched))
        decoder, text = json.JSONDecoder(), ""
        with suppress(OSError):
            while data := client.recv(65_536):
                text += data.decode()
                while text:
                    try:
                        message, end = decoder.raw_decode(text)
                    except ValueError:
                        break
                    text = text[end:]
                    self._answer(client, message, watched)

    def _answer(self, client: socket.socket, message: Any, watched: list[Any]) -> None:
        method, params = message.get("method"), message.get("params")
        self.methods.append(str(method))
        if method is None or method in self.silent or "*" in self.silent:
            return
        answers: dict[str, Callable[[], Any]] = {
            "echo": lambda: params,
            "get_schema": lambda: self.schemas[params[0]],
            "lock": lambda: {"locked": True},
            "monitor": lambda: self._rows(params, watched),
            "transact": lambda: [{"count": 1} for _ in params[1:]],
        }
        try:
            answer, error = answers[str(method)](), None
        except KeyError:
            answer, error = None, "unknown"
        _send(client, {"id": message["id"], "result": answer, "error": error})

    def _rows(self, params: Any, watched: list[Any]) -> Any:
        watched.append(params[1])
        queues = [[number, ["uuid", _queue(number)]] for number in self._rates]
        rows: dict[str, dict[str, Any]] = {
            "Open_vSwitch": {ROOT: {"bridges": ["uuid", BRIDGE], "next_cfg": 1, "cur_cfg": 0}},
            "Bridge": {BRIDGE: {"name": "daq", "ports": ["uuid", PORT]}},
            "Port": {PORT: {"name": "down", "interfaces": ["set", []], "qos": ["uuid", QOS]}},
            "QoS": {QOS: {"queues": ["map", queues]}},
            "Queue": {
                _queue(number): {"other_config": ["map", [["max-rate", rate]]]}
                for number, rate in self._rates.items()
            },
        }
        return {
            table: {name: {"new": row} for name, row in rows_of.items()}
            for table, rows_of in rows.items()
        }


def _queue(number: int) -> str:
    return f"00000000-0000-4000-8000-0000000001{number:02}"


def _send(client: socket.socket, message: Any) -> None:
    client.sendall(json.dumps(message).encode())
