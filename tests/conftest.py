"""Settings of all tests."""

from hypothesis import settings

# A machine that is busy is no reason to fail: no test depends on how long it takes.
settings.register_profile("daqloom", deadline=None)
settings.load_profile("daqloom")
