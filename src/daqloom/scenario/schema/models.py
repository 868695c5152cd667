"""The scenario: one description of a system for all methods."""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Self

from pydantic import ModelWrapValidatorHandler, model_validator
from pydantic_core import PydanticSerializationError

from daqloom.scenario import inputs
from daqloom.scenario.document import copy_of, forget, keys, put, without_empty_tables
from daqloom.scenario.schema.check import check
from daqloom.scenario.schema.choices import Choices, assumptions
from daqloom.scenario.schema.hosts import MEASURED_PLACE, UnitPlace
from daqloom.scenario.schema.switches import LEVELS
from daqloom.scenario.schema.tables import Tables
from daqloom.scenario.validation import validate


class Scenario(Tables):
    """An event-building system as a scenario file describes it: events, building protocol, units
    and hosts, transport, network. Methods support most combinations of these five. Values are SI
    numbers: whole bytes, bits per second, seconds, hertz.
    `daqloom.deployment.scenarios.settle` fills in run durations that the file lacks."""

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """See pydantic, which turns Ctrl-C into an error; this method raises KeyboardInterrupt."""
        try:
            return super().model_dump(**options)
        except PydanticSerializationError as error:
            if KeyboardInterrupt.__name__ in str(error):
                raise KeyboardInterrupt from None
            raise

    def document(self) -> dict[str, Any]:
        """Return the keys that apply, as a JSON object with the structure of a scenario file."""
        document = self.model_dump(mode="json")
        switches, given = document["network"]["switch"], self.network.switch
        for name in LEVELS:
            switches[name] = given.at_level(name).of_its_model(switches[name])
        pairs = zip(given.named, switches["named"], strict=True)
        switches["named"] = [each.of_its_model(table) for each, table in pairs]
        for place in document["hosts"]["units"]:
            for key in MEASURED_PLACE:
                if place[key] == UnitPlace.model_fields[key].default:
                    del place[key]
        for path, _ in list(Choices(document, type(self)).without_meaning()):
            forget(document, path)
        return without_empty_tables(document)

    def content(self) -> dict[str, Any]:
        """Return all keys that affect a result, as a JSON object. Name, title, description and seed
        are left out; files are represented by a digest of their content."""
        content = self.document()
        for key in ("name", "title", "description"):
            content.pop(key, None)
        del content["run"]["seed"]
        for path in set(keys(content)) & FILES.keys():
            put(content, path, FILES[path](self))
        if not self.storage.units:
            content.pop("storage", None)
        if not (measure := self.measure.bearing()):
            del content["measure"]  # defaults do not change the hash
        else:
            content["measure"] = measure
        return content

    def hash(self) -> str:
        """Return the SHA-256 of `content`, without the seed, which results record separately."""
        canonical = json.dumps(self.content(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def assumptions(self) -> dict[str, str]:
        """Return the guessed defaults that affect a result, as key → value text, such as
        `{"network.links.uplink.rate": "800 Gb/s"}`."""
        return dict(assumptions(self))

    @model_validator(mode="wrap")
    @classmethod
    def _with_choices(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(data, dict):
            return handler(data)
        choices = Choices(data, cls)
        foreign = dict(choices.without_meaning())
        refusals = [choices.refusal(*each) for each in foreign.items()]
        if foreign:
            data = copy_of(data)
            for path in foreign:
                forget(data, path)
            choices = Choices(data, cls)
        document, filled = choices.with_defaults()
        scenario = validate(handler, document, refusals)
        # Defaults that depend on other keys count as not given, so that a later override may change
        # them.
        for path in filled:
            _unset(scenario, path, data)
        return scenario

    @model_validator(mode="after")
    def _check(self) -> Self:
        check(self)
        return self


FILES: dict[str, Callable[[Scenario], str]] = {
    "event.size_histogram": lambda s: inputs.digest(*(s.event.histogram or ())),
    "event.trace": lambda s: inputs.digest(s.event.arrival_times or b""),
    "event.lhc.filling": lambda s: inputs.digest(s.event.lhc.pattern),
    "network.dumps": lambda s: s.network.digest(),
    "hosts.latency.file": lambda s: s.hosts.latency.digest(),
    "readout.response.file": lambda s: s.readout.response.digest(),
    "readout.card.acknowledge.file": lambda s: s.readout.card.acknowledge.digest(),
    "readout.card.spike.file": lambda s: s.readout.card.spike.digest(),
    "building.jitter.file": lambda s: s.building.jitter.digest(),
}
"""Keys that name a file with effect on results, and functions for the digest of its content."""


def _unset(scenario: Scenario, path: str, document: Mapping[str, Any]) -> None:
    """Mark a key as not given, together with enclosing tables that `document` lacks."""
    part: Any = scenario
    table: Any = document
    for name in path.split("."):
        table = table.get(name) if isinstance(table, Mapping) else None
        if table is None:
            part.model_fields_set.discard(name)
        part = getattr(part, name)
