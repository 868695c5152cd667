"""Duties of every adapter of a device, whatever its protocol is."""

import json

import pytest

from daqloom.device.adapter import AdapterError, Configures, Counts


def check_configures(adapter, desired):
    """Set, read back and set back, with what is saved gone through JSON as in a file."""
    assert isinstance(adapter, Configures)
    assert set(desired.set_fields) <= adapter.settable
    with adapter:
        before = dict(adapter.applied())
        saved = json.loads(json.dumps(adapter.save()))
        steps = adapter.plan(desired)
        assert steps
        assert all(isinstance(step, str) and step.isprintable() for step in steps)
        assert adapter.applied() == before, "a plan changes nothing"
        adapter.apply(desired)
        for of_port in adapter.applied().values():
            for name, value in desired.set_fields.items():
                found = getattr(of_port, name)
                assert found == pytest.approx(value, rel=adapter.rounding, abs=0), name
        adapter.apply(desired)  # once more changes nothing
        adapter.restore(saved)
        assert adapter.applied() == before
        adapter.restore(saved)
        assert adapter.applied() == before


def check_counts(adapter, ports):
    """Counters of all ports, that do not fall."""
    assert isinstance(adapter, Counts)
    with adapter:
        adapter.begin()
        first, second = adapter.read(), adapter.read()
    assert set(first) == set(second) == set(ports)
    for port in ports:
        for name in ("sent", "sent_bytes", "dropped"):
            assert 0 <= getattr(first[port], name) <= getattr(second[port], name)


def enter(adapter):
    """Connect to a device and disconnect."""
    with adapter:
        pass


def check_refuses_entry(adapter, secret=""):
    """Entering an adapter fails as `check_refuses` says."""
    return check_refuses(lambda: enter(adapter), secret)


def check_refuses(use, secret=""):
    """`use` meets a device that does not do what it should: one sentence, and no secret in it."""
    with pytest.raises(AdapterError) as found:
        use()
    text = str(found.value)
    assert text
    assert "\n" not in text
    assert "Traceback" not in text
    assert not secret or secret not in text
    return text
