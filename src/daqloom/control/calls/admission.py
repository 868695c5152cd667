"""Admission of calls: both sides prove that they know a secret of the run, which is never sent.

    caller → run control   Greet     the call's name, nonce C
    run control → caller             nonce S, HMAC-SHA256(secret, "run control", call, C, S)
    caller → run control   the call  nonce S, HMAC-SHA256(secret, "caller", call, C, S)

The caller obeys only a run control that has answered its nonce. The run control admits a call by
its metadata alone, before any message; each S admits one call, which prevents replays, and the
proofs of the two sides differ, which prevents reflection."""

import hmac
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from daqloom.control.calls.connection import GREET
from daqloom.results.errors import MeasureError

CALL_KEY, NONCE_KEY, PROOF_KEY = "call", "nonce-bin", "proof-bin"
"""Keys of the metadata; gRPC encodes the values of keys that end with -bin."""
NONCE_BYTES = 32
MOST_GREETED = 4096
"""Greeted callers that the run control keeps until they call; older ones are dropped."""

_CONTROL, _CALLER = b"run control", b"caller"

Metadata = tuple[tuple[str, str | bytes], ...]


def _proof(secret: bytes, side: bytes, call: str, caller: bytes, control: bytes) -> bytes:
    # Nonces are of one length and names hold no NUL: no two calls have the same text.
    text = b"\0".join((side, call.encode(), caller + control))
    return hmac.digest(secret, text, "sha256")


class Caller:
    """The caller's side of the handshake."""

    def __init__(self, call: str, secret: bytes) -> None:
        self._call, self._secret = call, secret
        self._nonce = secrets.token_bytes(NONCE_BYTES)

    @property
    def greeting(self) -> Metadata:
        """Return the metadata of `Greet`."""
        return ((CALL_KEY, self._call), (NONCE_KEY, self._nonce))

    def admission(self, answer: bytes) -> Metadata | None:
        """Return the metadata of the call from the answer to `Greet`, if it is a proof."""
        nonce, proof = answer[:NONCE_BYTES], answer[NONCE_BYTES:]
        expected = _proof(self._secret, _CONTROL, self._call, self._nonce, nonce)
        if not hmac.compare_digest(proof, expected):
            return None
        ours = _proof(self._secret, _CALLER, self._call, self._nonce, nonce)
        return ((NONCE_KEY, nonce), (PROOF_KEY, ours))


def greeting(channel: Any, address: str, call: str, secret: bytes, timeout_s: float) -> Metadata:
    """Return the metadata that admits one call over `channel` to `address`. Raises MeasureError if
    another program listens there, and gRPC's error."""
    caller = Caller(call, secret)
    answer = channel.unary_unary(GREET)(b"", timeout=timeout_s, metadata=caller.greeting)
    admission = caller.admission(answer)
    if admission is None:
        raise MeasureError(
            f"the run control at {address} has another token, or another program listens there; "
            "give the address and the token of the same run"
        )
    return admission


class Greetings:
    """Run control's side of the handshake, with the secret of each call."""

    def __init__(self, secrets_of_calls: Mapping[str, bytes]) -> None:
        self._secrets = dict(secrets_of_calls)
        self._greeted: dict[bytes, tuple[str, bytes]] = {}

    def greet(self, metadata: Iterable[Any]) -> bytes | None:
        """Return the answer to `Greet`, unless the greeting is malformed."""
        values = dict(metadata)
        call, nonce = str(values.get(CALL_KEY)), values.get(NONCE_KEY)
        secret = self._secrets.get(call)
        if secret is None or not isinstance(nonce, bytes) or len(nonce) != NONCE_BYTES:
            return None
        ours = secrets.token_bytes(NONCE_BYTES)
        if len(self._greeted) >= MOST_GREETED:
            del self._greeted[next(iter(self._greeted))]
        self._greeted[ours] = call, nonce
        return ours + _proof(secret, _CONTROL, call, nonce, ours)

    def admits(self, call: str, metadata: Iterable[Any]) -> bool:
        """Return whether the caller has been greeted and knows the secret."""
        values = dict(metadata)
        ours, proof = values.get(NONCE_KEY), values.get(PROOF_KEY)
        if not isinstance(ours, bytes) or not isinstance(proof, bytes):
            return False
        meant, nonce = self._greeted.pop(ours, ("", b""))
        if meant != call:
            return False
        return hmac.compare_digest(proof, _proof(self._secrets[call], _CALLER, call, nonce, ours))
