"""Malformed messages."""

import gc
import weakref

from daqloom.control.protocol.messages import MalformedError
from daqloom.control.status import read_request


class Caller:
    """Keeps the error of a refused message, as a gRPC call keeps the reason for its abort."""

    refusal: MalformedError

    def read(self, body: bytes) -> None:
        try:
            read_request(body)
        except MalformedError as error:
            self.refusal = error


def test_the_error_of_a_refused_message_does_not_keep_its_reader_alive() -> None:
    caller = Caller()
    caller.read(b'{"command": "reset"}')
    assert "reset has to name a unit" in str(caller.refusal)
    gone = weakref.ref(caller)
    del caller
    gc.collect()
    assert gone() is None
