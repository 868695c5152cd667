"""The hash of a scenario with some keys changed, without building that scenario.

Validating a scenario takes most of a millisecond, and a plan may have 10⁵ of them. A key is *local*
if changing it changes nothing else of the resolved system; that is tried out on the real thing, for
every key, before it is believed. Whatever is not local is hashed the slow way.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from daqloom.scenario import ScenarioError
from daqloom.scenario.choices import deciding, is_something
from daqloom.scenario.document import look, put
from daqloom.scenario.models import Scenario
from daqloom.scenario.overrides import FILE_KEYS
from daqloom.study.axis import dimension_of_key
from daqloom.topology.loaded import override

MOST_READERS = 1000


class ScenarioHasher:
    """Hashes `base` with overrides; equal to that of `override(base, …)`."""

    def __init__(self, base: Scenario) -> None:
        self._base = base
        self._content = base.content()
        self._sections = {name: _dump(value) for name, value in self._content.items()}
        self._changed: dict[str, dict[str, str]] = {}
        self._values: dict[tuple[str, object], str | None] = {}
        self._believed: set[tuple[object, ...]] = set()
        self._readers: dict[str, ScenarioHasher | None] = {}

    def hash(self, overrides: Mapping[str, Any]) -> str:
        """SHA-256. Raises ScenarioError where the slow way must be gone and the system is none."""
        files = {key: value for key, value in overrides.items() if key in FILE_KEYS}
        if files and (reader := self._with(files)):
            return reader.hash({k: v for k, v in overrides.items() if k not in files})
        if not self._local(overrides):
            return override(self._base, overrides).hash()
        return self._quick(overrides)

    def _with(self, files: Mapping[str, Any]) -> ScenarioHasher | None:
        """Of `base` with other files, which are read once; None where that alone is no system."""
        label = repr(sorted(files.items()))
        if label not in self._readers:
            if len(self._readers) >= MOST_READERS:
                self._readers.clear()
            try:
                self._readers[label] = ScenarioHasher(override(self._base, files))
            except ScenarioError:
                self._readers[label] = None
        return self._readers[label]

    def _quick(self, overrides: Mapping[str, Any]) -> str:
        sections: dict[str, list[tuple[str, Any]]] = {}
        for key, value in overrides.items():
            section, _, path = key.partition(".")
            sections.setdefault(section, []).append((path, value))
        parts = []
        for name in sorted(self._sections):
            text = self._sections[name]
            if name in sections:
                text = self._section(name, sections[name])
            parts.append(f"{json.dumps(name)}:{text}")
        return hashlib.sha256(("{" + ",".join(parts) + "}").encode()).hexdigest()

    def _section(self, name: str, changes: list[tuple[str, Any]]) -> str:
        cache = self._changed.setdefault(name, {})
        label = repr(changes)
        if label not in cache:
            if len(cache) > 10_000:
                cache.clear()
            section = json.loads(self._sections[name])
            for path, value in changes:
                put(section, path, value)
            cache[label] = _dump(section)
        return cache[label]

    def _local(self, overrides: Mapping[str, Any]) -> bool:
        """Whether these keys together are local: tried once for every choice, as of a switch's
        model, and on the first numbers that come."""
        keys = overrides.keys()
        if FILE_KEYS & keys or any("." not in key for key in keys):
            return False
        label = tuple((key, self._choice(key, value)) for key, value in overrides.items())
        if label not in self._believed:
            try:
                slow = override(self._base, overrides).hash()
            except ScenarioError:
                return False
            if slow != self._quick(overrides):
                return False
            self._believed.add(label)
        return all(self._as_dumped(key, value) for key, value in overrides.items())

    def _as_dumped(self, key: str, value: Any) -> bool:
        """Whether a value is written in the resolved system just as it is given."""
        known = (key, repr(value))
        if known not in self._values:
            if len(self._values) > 200_000:
                self._values.clear()
            self._values[known] = self._dumped(key, value)
        return self._values[known] == _dump(value)

    def _dumped(self, key: str, value: Any) -> str | None:
        dimension = dimension_of_key(type(self._base), key)
        if dimension is not None:
            try:
                return _dump(dimension.format(dimension.parse(value)))
            except ValueError:
                return None
        try:
            content: Any = override(self._base, {key: value}).content()
        except ScenarioError:
            return None
        return _dump(look(content, key))

    def _choice(self, key: str, value: object) -> object:
        """The value where it is one of a few words; of a number on which other keys depend whether
        it is 0; None for other numbers, quantities and lists."""
        if isinstance(value, str | bool) and dimension_of_key(type(self._base), key) is None:
            return value
        return is_something(value) if key in deciding(type(self._base)) else None


def _dump(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
