"""Hashes of scenarios with changed keys, computed without building the changed scenarios.
Validation of a scenario takes almost a millisecond, and a plan may have 10⁵ scenarios. A key is
*local* if changing it changes nothing else in the resolved scenario; this is tested with real
scenarios. If a changed key is not local, the scenario is built and hashed."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from daqloom.deployment.scenarios import override
from daqloom.scenario import ScenarioError
from daqloom.scenario.document import ABSENT, look, put
from daqloom.scenario.file.overrides import FILE_KEYS
from daqloom.scenario.schema.choices import deciding
from daqloom.scenario.schema.models import Scenario
from daqloom.study.file.axis import dimension_of_key
from daqloom.study.file.common_keys import choice

MOST_READERS = 1000
SPARSE = "measure"
"""Table whose keys are not hashed if they have their defaults."""


class ScenarioHasher:
    """Computes the hash of `base` with overrides, equal to the hash of `override(base, …)`."""

    def __init__(self, base: Scenario) -> None:
        self._base = base
        self._sections = {name: _dump(value) for name, value in base.content().items()}
        self._verified: set[tuple[object, ...]] = set()
        # The caches are keyed by JSON text, because values may be lists.
        self._section = functools.lru_cache(maxsize=10_000)(self._changed_section)
        self._dumped = functools.lru_cache(maxsize=200_000)(self._as_resolved)
        self._with = functools.lru_cache(maxsize=MOST_READERS)(self._reader)

    def hash(self, overrides: Mapping[str, Any]) -> str:
        """Return the SHA-256 of the changed scenario. Raises ScenarioError if it is invalid."""
        files = {key: value for key, value in overrides.items() if key in FILE_KEYS}
        if files and (reader := self._with(_dump(files))):
            return reader.hash({k: v for k, v in overrides.items() if k not in files})
        if not self._local(overrides):
            return override(self._base, overrides).hash()
        return self._quick(overrides)

    def _reader(self, files: str) -> ScenarioHasher | None:
        """Return the hasher of `base` with other input files, so that each is read once; None if
        `base` with only the files changed is invalid."""
        try:
            return ScenarioHasher(override(self._base, json.loads(files)))
        except ScenarioError:
            return None

    def _quick(self, overrides: Mapping[str, Any]) -> str:
        sections: dict[str, dict[str, Any]] = {}
        for key, value in overrides.items():
            section, _, path = key.partition(".")
            sections.setdefault(section, {})[path] = value
        parts = []
        for name in sorted(self._sections):
            text = self._sections[name]
            if name in sections:
                text = self._section(name, _dump(sections[name]))
            parts.append(f"{json.dumps(name)}:{text}")
        return hashlib.sha256(("{" + ",".join(parts) + "}").encode()).hexdigest()

    def _changed_section(self, name: str, changes: str) -> str:
        section = json.loads(self._sections[name])
        for path, value in json.loads(changes).items():
            put(section, path, value)
        return _dump(section)

    def _local(self, overrides: Mapping[str, Any]) -> bool:
        """Return whether these keys together are local. Tested once for each combination of words,
        such as a switch's model, with the first numbers that occur."""
        keys = overrides.keys()
        if FILE_KEYS & keys or any("." not in key for key in keys):
            return False
        if any(key.partition(".")[0] not in self._sections for key in keys):
            return False
        label = tuple((key, self._choice(key, value)) for key, value in overrides.items())
        if label not in self._verified:
            try:
                if override(self._base, overrides).hash() != self._quick(overrides):
                    return False
            except ScenarioError:
                return False
            self._verified.add(label)
        # Values must have the notation of the resolved scenario.
        texts = ((key, _dump(value)) for key, value in overrides.items())
        return all(self._dumped(key, text) == text for key, text in texts)

    def _as_resolved(self, key: str, text: str) -> str | None:
        """Return a key's value in the resolved scenario as JSON text; None if it is invalid."""
        value = json.loads(text)
        dimension = None if key.startswith(f"{SPARSE}.") else dimension_of_key(key)
        try:
            if dimension is not None:
                return _dump(dimension.format(dimension.parse(value)))
            found = look(override(self._base, {key: value}).content(), key)
            return None if found is ABSENT else _dump(found)
        except (ValueError, ScenarioError):
            return None

    def _choice(self, key: str, value: object) -> object:
        """Return `choice` for words and for keys that determine whether others apply; None for
        other values."""
        word = isinstance(value, str | bool) and dimension_of_key(key) is None
        return choice(key, value) if word or key in deciding(type(self._base)) else None


def _dump(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
