"""Messages that are none."""

import gc
import weakref

from daqloom.measure.messages import MalformedError
from daqloom.measure.status import read_request


class Caller:
    """Keeps why what it read was refused, as a call keeps why it was aborted."""

    refusal: MalformedError

    def read(self, body: bytes) -> None:
        try:
            read_request(body)
        except MalformedError as error:
            self.refusal = error


def test_a_refused_message_does_not_keep_who_read_it() -> None:
    caller = Caller()
    caller.read(b'{"command": "reset"}')
    assert "reset has to name a unit" in str(caller.refusal)
    gone = weakref.ref(caller)
    del caller
    gc.collect()
    assert gone() is None
