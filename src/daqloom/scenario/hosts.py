"""[sources] and [builders]: the hosts at both ends."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from daqloom.scenario.part import Part
from daqloom.scenario.quantities import PositiveBytes, Seconds

DelayKind = Literal["fixed", "exponential", "gaussian", "uniform"]


def _check_spread(kind: DelayKind, mean: float, spread: float, prefix: str = "") -> None:
    if kind == "uniform" and spread > mean:
        raise ValueError(
            f"{prefix}spread is larger than {prefix}mean; a uniform delay reaches from "
            "mean - spread to mean + spread and cannot be negative"
        )


class Sources(Part):
    """[sources]: the readout units (RO servers, ROSes) that hold the fragments."""

    count: int = Field(default=48, ge=1, le=50_000, description="number of sources")
    response: DelayKind = Field(
        default="fixed", description="distribution of the time from request to answer"
    )
    response_mean: Seconds = Field(default=0.0, description="mean response time (s)")
    response_spread: Seconds = Field(
        default=0.0,
        description=(
            "spread of the response time: standard deviation (gaussian; a negative time counts as "
            "zero) or half width (uniform); fixed and exponential do not use it (s)"
        ),
    )
    cost_per_message: Seconds = Field(
        default=0.0,
        description="processor time per message, sent or received, one message at a time (s)",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_spread(self.response, self.response_mean, self.response_spread, "response_")
        return self


class Stage(Part):
    """One delay of the processing chain of a built event."""

    kind: DelayKind = Field(default="fixed", description="distribution of the delay")
    mean: Seconds = Field(default=0.0, description="mean delay (s)")
    spread: Seconds = Field(
        default=0.0, description="standard deviation (gaussian) or half width (uniform) (s)"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_spread(self.kind, self.mean, self.spread)
        return self


class Builders(Part):
    """[builders]: the builder units (EF nodes, DCMs) that collect whole events."""

    count: int = Field(default=32, ge=1, le=10_000, description="number of builders")
    assignment: Literal["round-robin", "least-busy", "random"] = Field(
        default="round-robin", description="which builder the event manager gives an event to"
    )
    concurrent_events: int = Field(
        default=32,
        ge=1,
        le=10_000,
        description="events that one builder collects and processes at a time",
    )
    outstanding_fragments: int = Field(
        default=0,
        ge=0,
        le=1_000_000_000,
        description=(
            "fragments that one builder may have requested and not yet received: the "
            "application's traffic shaping; 0 = no limit"
        ),
    )
    request_size: PositiveBytes = Field(
        default=100, description="payload of one fragment request (B)"
    )
    processing: tuple[Stage, ...] = Field(
        default=(),
        strict=False,
        max_length=64,
        description=(
            'delays that follow one another once an event is built, such as [{kind = "exponential",'
            ' mean = "1 ms"}]; the event keeps its place among concurrent_events meanwhile'
        ),
    )
    cost_per_message: Seconds = Field(
        default=0.0,
        description="processor time per message, sent or received, one message at a time (s)",
    )
