"""Records of published numbers: a TOML file for each, in the folder `published`."""

import re
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    ValidationError,
    model_validator,
)

from daqloom.base.words import did_you_mean
from daqloom.scenario import ScenarioError
from daqloom.scenario.file.explain import refusal
from daqloom.scenario.package_files import package_files
from daqloom.scenario.quantities import FREQUENCY, RATE, SIZE, TIME
from daqloom.scenario.toml import read_toml
from daqloom.scenario.validation import value_error
from daqloom.study import StudyError
from daqloom.study.methods.all_methods import Method
from daqloom.study.reproduction import expression
from daqloom.study.reproduction.papers import PaperName

LARGEST_RECORD_BYTES = 1 << 16
SCALES = {"": 1.0, "%": 0.01}
"""Units that are no quantity of a scenario, in SI."""
COUNTED = re.compile("[a-z]+s")
"""Units of counts, such as packets."""
Name = Annotated[str, Field(pattern="^[a-z][a-z0-9_]*$", max_length=40)]
Number = Annotated[float, Field(strict=True)]  # true is no number
Numbers = Number | dict[str, Number]
"""One number, or a series: a number for each step of an axis, such as "5 MB"."""
Outcome = Literal["yes", "no", "input", "not computed", "no value"]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SurfaceFit(_Table):
    """[ours.fit]: value of a surface fitted over event rate and size, as `daqloom study fit`."""

    at: dict[str, str | int | float]
    """Place at which the surface is evaluated: a value for event.rate and one for event.size."""
    below: str = ""
    """Largest fitted value, such as "32 MB"; the surface extrapolates beyond."""
    terms: str = "rate-and-size"
    """Terms of the surface, as for `daqloom study fit --terms`."""
    result: Literal["value", "r_squared"] = "value"
    """Value at the place with its 95 % prediction interval, or the R² of the fit."""


class FactorFit(_Table):
    """[ours.factor]: factor between formula and simulation, as `daqloom study compare`."""

    below: str = ""
    """Largest value of points that are compared, such as "27 MB"."""


class Term(_Table):
    """A number from the dataset of a study."""

    study: str = ""
    """Name of a study from `daqloom study list`; without a name, `tables` describes the study."""
    tables: dict[str, Any] = {}
    """Tables of a study file, which replace those of the study."""
    quick: dict[str, Any] = {}
    """Tables of a study file, which replace those of the study's quick form."""
    method: Method = "simulate"
    """Method that gives the number."""
    metric: str = ""
    """Metric, or boundary or boundary_shared for the result of a search."""
    at: dict[str, Any] = {}
    """Steps of the study's axes, such as `"event.size" = "5 MB"`; other axes stay free."""
    fit: SurfaceFit | None = None
    """See [ours.fit]."""
    factor: FactorFit | None = None
    """See [ours.factor]."""


class Ours(Term):
    """[ours]: how daqloom computes the number: a term, or an expression of several."""

    value: str = ""
    """Expression of the names of terms, such as "without / with - 1", with + - * / **, abs, min and
    max (over free axes); by default the only term."""
    terms: dict[Name, Term] = {}
    """Terms by name; each has the keys of [ours] as defaults, and adds its steps to `at`."""

    @model_validator(mode="after")
    def _names_known(self) -> "Ours":
        if self.value:
            used, known = expression.names(self.value), set(self.terms)
            mistakes = [f'value = "{self.value}" has no term {each}' for each in used - known]
            mistakes += [f"terms.{each} is not used by value" for each in known - used]
        else:
            mistakes = ["terms has no expression: give it in value"] if self.terms else []
            mistakes += [] if self.metric or self.factor else ["metric is missing"]
        if mistakes:
            raise value_error(*sorted(mistakes))
        return self

    @property
    def named_terms(self) -> dict[str, Term]:
        """Return the terms with the defaults of [ours]; without names, that of "" alone."""
        common = {
            key: getattr(self, key) for key in Term.model_fields if key in self.model_fields_set
        }
        if not self.value:
            return {"": Term(**common)}
        found = {}
        for name, term in self.terms.items():
            own = {key: getattr(term, key) for key in term.model_fields_set}
            found[name] = Term(**common | own | {"at": self.at | term.at})
        return found


class Values(_Table):
    """[stored.full], [stored.quick]: the computed value, as `--update` writes it."""

    value: Numbers
    """Value in the unit of the record: the mean over seeds."""
    low: Numbers | None = None
    """Lowest value over seeds, or lower end of the interval of a fit."""
    high: Numbers | None = None
    """Highest value over seeds, or upper end of the interval of a fit."""
    seeds: int = Field(default=0, ge=0)
    """Number of seeds; 0 without random numbers."""


class Forms(_Table):
    """[stored]: computed values of both forms."""

    full: Values | None = None
    """See [stored.full]."""
    quick: Values | None = None
    """See [stored.quick]."""


class Record(_Table):
    """A published number or figure, and how daqloom computes it."""

    paper: PaperName
    """Paper that has the number."""
    where: str = Field(max_length=60)
    """Place in the paper, such as "fig. 3"."""
    title: str = Field(max_length=100)
    """The number in words, without its value."""
    unit: str = ""
    """Unit of all numbers of the record: a unit with a prefix such as MB, %, a counted thing such
    as packets, or nothing."""
    published: Numbers | None = None
    """Published value; a table of values by step for a series; without it, ours stands alone."""
    error: Number | None = Field(default=None, ge=0)
    """Published error or uncertainty of reading; by default 5 % of the value."""
    relation: Literal["equal", "at least", "at most"] = "equal"
    """Meaning of the published value: a value or a bound."""
    derived: StrictBool = False
    """Whether the number follows from printed ones by arithmetic."""
    input: str = Field(default="", max_length=300)
    """Why the number is an input of the computation, so that its agreement proves nothing."""
    assumed: str = Field(default="", max_length=500)
    """Values that the paper does not print."""
    reason: str = Field(default="", max_length=500)
    """Why the number does not come out, or "not understood"."""
    section: str = Field(default="", max_length=120)
    """Page and heading that discuss the number, such as "atlas-figures.md#where-k-comes-from"."""
    elsewhere: str = Field(default="", max_length=300)
    """Why no command computes the number, such as a measurement in a laboratory."""
    ours: Ours | None = None
    """See [ours]."""
    stored: Forms = Forms()
    """See [stored]."""

    @model_validator(mode="after")
    def _complete(self) -> "Record":
        mistakes = []
        if (self.ours is None) == (self.elsewhere == ""):
            mistakes.append("ours or elsewhere is needed, and not both")
        try:
            _ = self.scale
        except ValueError as error:
            mistakes.append(str(error))
        if mistakes:
            raise value_error(*mistakes)
        return self

    @cached_property
    def scale(self) -> float:
        """Return the record's unit in SI units. Raises ValueError."""
        for dimension in (SIZE, RATE, TIME, FREQUENCY):
            with suppress(ValueError):
                return float(dimension.parse(f"1 {self.unit}"))
        if self.unit in SCALES or COUNTED.fullmatch(self.unit):
            return SCALES.get(self.unit, 1.0)
        raise ValueError(
            f'unit = "{self.unit}" is not known; expected a unit such as MB, Tb/s, ms or kHz, %, '
            "or a plural such as packets"
        )


def shipped_records() -> dict[str, Path]:
    """Return the files of the records that come with daqloom, by name."""
    return package_files("published")


def records() -> dict[str, Record]:
    """Return all records by name. Raises StudyError."""
    return {name: load_record(path) for name, path in shipped_records().items()}


def load_record(path: Path) -> Record:
    """Read a record. Raises StudyError with all mistakes of the file."""
    try:
        return Record.model_validate(read_toml(path, LARGEST_RECORD_BYTES))
    except ValidationError as error:
        raise StudyError(*refusal(error, str(path), (), system=Record).mistakes) from None
    except ScenarioError as error:
        raise StudyError(*error.mistakes) from None


def select(names: list[str]) -> list[str]:
    """Return the records that names mean: a name, or words in several such as `atlas-fig3` or
    `fig4`. Raises StudyError."""
    known = list(shipped_records())
    found: list[str] = []
    for name in names:
        chosen = [name] if name in known else [k for k in known if f"-{name}-" in f"-{k}-"]
        if not chosen:
            hint = did_you_mean(name, known, "`daqloom reproduce` lists all")
            raise StudyError(f'there is no published number "{name[:80]}"; {hint}')
        found += (each for each in chosen if each not in found)
    return found
