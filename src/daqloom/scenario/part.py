"""What every table of a scenario shares."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Part(BaseModel):
    """A table of the scenario file: immutable, and no key that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


Number = Annotated[float, Field(strict=False, ge=0)]
"""A plain number without unit; whole numbers may be written without a point."""
