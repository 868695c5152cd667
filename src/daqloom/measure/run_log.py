"""The log of a run, which the engine's run control keeps."""

from daqloom import _engine

RunEvent = _engine.RunEvent
About = _engine.About
