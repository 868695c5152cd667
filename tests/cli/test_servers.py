"""The command that starts the MCP server: its notes, without serving."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from support.command import output


@pytest.mark.parametrize("with_folder", [True, False])
def test_a_note_warns_of_access_by_other_machines(with_folder, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("daqloom.cli.assistant.server.make_server", Mock())
    monkeypatch.setattr("socket.create_server", Mock())
    folder, reads = ([tmp_path], f" and read below {tmp_path}") if with_folder else ([], "")
    note, _ = output("mcp", *folder, "--http", 8750, "--host", "192.0.2.1").splitlines()
    assert note == f"daqloom: everybody who reaches 192.0.2.1 port 8750 may compute here{reads}"
