"""Scheduling of an Ethernet port: shares of the link for classes of frames."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from daqloom.scenario.schema.part import ETHERNET, Part, When, items

CLASSES = 8
"""Number of classes of Ethernet frames (802.1p, 802.1Q); a service level from 0 to 7 is a class."""
MOST_WEIGHT = 1000


class Scheduling(Part):
    """Keys common to switches and hosts, which have ports."""

    scheduling: Annotated[Literal["fifo", "strict", "weighted"], ETHERNET] = "fifo"
    """Order in which a port sends frames: in the order of arrival (fifo), the highest class first
    (strict), or each class with its share of the link's rate (weighted). The class is the service
    level of the message."""
    weights: Annotated[
        tuple[Annotated[int, Field(ge=0, le=MOST_WEIGHT)], ...],
        When(".scheduling", ("weighted",)),
    ] = items(CLASSES)
    """Shares of classes 0, 1, … in the link's rate. A class with share 0, or not listed, has strict
    priority over classes with a share."""

    @model_validator(mode="after")
    def _check_weights(self) -> Self:
        if self.scheduling == "weighted" and not any(self.weights):
            raise ValueError(
                'scheduling = "weighted" requires weights, such as [4, 1] for classes 0 and 1'
            )
        if self.scheduling != "weighted" and self.weights:
            refusal = f'weights mean nothing with scheduling = "{self.scheduling}"'
            raise ValueError(f'{refusal}; leave them out, or set scheduling to "weighted"')
        return self
