"""Credentials for a device: from the environment or from a private file of the user, never from a
scenario; they never appear in a result or log."""

import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from daqloom.base.words import reason_of
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.files import open_text

PREFIX = "DAQLOOM_DEVICE_"
LARGEST_FILE_BYTES = 64 << 10
_KEYS = ("user", "password", "token", "key_file")


@dataclass(frozen=True)
class Credentials:
    """Name, password, token (such as an SNMP community) and private-key file; empty: not given."""

    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    key_file: str = ""

    def without_secrets(self, text: str) -> str:
        """Return a text in which each secret is replaced by asterisks."""
        for secret in (self.password, self.token):
            text = text.replace(secret, "***") if secret else text
        return text


def credentials_of(file: Path | None, environment: Mapping[str, str] = os.environ) -> Credentials:
    """Return the credentials in a file; without a file, those in DAQLOOM_DEVICE_USER, _PASSWORD,
    _TOKEN and _KEY_FILE. Raises ScenarioError."""
    if file is None:
        return Credentials(**{key: environment.get(PREFIX + key.upper(), "") for key in _KEYS})
    text = _read_own(file)
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        # The parser's message could contain a secret.
        raise ScenarioError(f"credentials: {file} is not TOML; expected {_EXAMPLE}") from None
    wrong = [key for key, value in document.items() if key not in _KEYS or type(value) is not str]
    if wrong:
        expected = ", ".join(_KEYS)
        raise ScenarioError(
            f"credentials: {file} has the key {wrong[0][:40]}; expected texts among {expected}"
        )
    if document.get("key_file"):
        document["key_file"] = str(file.parent / Path(document["key_file"]).expanduser())
    return Credentials(**document)


def _read_own(file: Path) -> str:
    """Return the text of a private file of this user or of root. Raises ScenarioError."""
    try:
        with open_text(file) as opened:
            found = os.fstat(opened.fileno())
            content = opened.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise ScenarioError(f"credentials: {file} cannot be read: {reason_of(error)}") from None
    except ValueError:
        raise ScenarioError("credentials: a file name cannot hold a null character") from None
    if found.st_uid not in (os.getuid(), 0):
        raise ScenarioError(
            f"credentials: {file} belongs to another user (number {found.st_uid}); expected a file "
            "of your own"
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise ScenarioError(
            f"credentials: {file} is readable by other users (mode "
            f"{stat.S_IMODE(found.st_mode):04o}); expected 0600: chmod 600 {file}"
        )
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = ""
    if not text or len(content) > LARGEST_FILE_BYTES:
        raise ScenarioError(f"credentials: {file} is not a short text; expected {_EXAMPLE}")
    return text


_EXAMPLE = 'lines such as user = "daq"'
