"""Quantities with units: "5 MB" in a file, SI numbers in memory. Bytes and bits per second are
integers, seconds and hertz are floats."""

import math
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer
from pydantic.fields import FieldInfo

LONGEST_QUANTITY = 64
"""Maximum characters of a quantity."""


class NotationError(ValueError):
    """Error for text that is not a number with a unit of the expected dimension."""

    def __init__(self, wrong: str, hint: str = "") -> None:
        super().__init__(wrong)
        self.hint = hint


@dataclass(frozen=True)
class Dimension:
    """A dimension: SI unit, accepted units, and valid range. Within the ranges, all products that
    the simulator forms fit into 64 bits of whole picoseconds."""

    name: str
    unit: str
    scale: dict[str, int]
    example: str
    whole: bool
    maximum: float
    minimum: float = 0.0
    zero_allowed: bool = True

    def parse(self, text: object) -> int | float:
        """Parse `text` into an SI number. Raises ValueError with the expected notation."""
        try:
            return self._value(text)
        except NotationError as error:
            expected = self._rewritten(str(text))
            hint = "" if expected else error.hint
            expected = expected or f"a {self._expected}"
            raise ValueError(f"{error}{hint}; write it as {expected}") from None

    def _value(self, text: object) -> int | float:
        """Parse `text`. Raises NotationError if it is no number with a unit, else ValueError."""
        if isinstance(text, bool) or not isinstance(text, str):
            if isinstance(text, (int, float)) and not isinstance(text, bool):
                raise ValueError(f"has no unit; write it as a {self._expected}")
            raise ValueError(f"is not a quantity; write it as a {self._expected}")
        if "," in text:
            pointed = text.strip().replace(",", "." if text.count(",") == 1 else "")
            raise ValueError(
                "has a comma; write it with a point before decimals and with nothing between "
                f'thousands, such as "{pointed[:LONGEST_QUANTITY]}"'
            )
        if len(text) > LONGEST_QUANTITY:
            raise ValueError("is too long for a quantity")
        if (found := _QUANTITY.fullmatch(text.strip())) is None:
            raise NotationError("is not a quantity")
        number, _, _, whole, prefix, unit = found.groups(default="")
        if whole in self.scale:  # "min" is not milli-"in"
            prefix, unit = "", whole
        if unit == "":
            raise NotationError("has no unit")
        if unit not in self.scale:
            hint = "; B is bytes, b is bits" if {unit[:1], self.unit[:1]} == {"b", "B"} else ""
            raise NotationError(f"is not in {self.unit}", hint)
        value = float(Decimal(number) * _PREFIXES[prefix]) * self.scale[unit]
        if not math.isfinite(value):
            raise ValueError(f"is not finite; write it as a {self._expected}")
        if value < 0:
            raise ValueError("is negative; it must be " + self._range)
        if value > self.maximum or (value < self.minimum and value != 0):
            raise ValueError("is out of range; it must be " + self._range)
        if value == 0 and not self.zero_allowed:
            raise ValueError("is zero; it must be " + self._range)
        if not self.whole:
            return value
        if value != round(value):
            raise ValueError(f"is not a whole number of {self.unit}")
        return round(value)

    def format(self, value: float) -> str:
        """Return `value` with this dimension's unit."""
        return format_quantity(value, self.unit)

    def _rewritten(self, text: str) -> str:
        """Return the accepted notation for text with another spelling of the unit ("50 GbE"), a
        multiple ("4 x 25 Gb/s") or a spread ("1 MB ± 10 %"); "" for other text."""
        text = text.strip()[:LONGEST_QUANTITY]
        try:
            if several := _SEVERAL.fullmatch(text):
                one = self._respell(several[2])
                total = self.format(self._value(one) * int(several[1]))
                self._value(total)
                uplinks = f'; on uplinks write "{one}" and count = {several[1]}'
                return f'"{total}"{uplinks if self.unit == "b/s" else ""}'
            if spread := _SPREAD.fullmatch(text):
                mean = self._respell(spread[1])
                self._value(mean)
                keys = f'spread = "{spread[3]}"'
                if spread[2]:
                    share = float(spread[2]) / 100
                    keys = f'size_distribution = "gaussian" with size_spread = {share:g}'
                return f'"{mean}", and its spread as a key where there is one, such as {keys}'
            one = self._respell(text)
            self._value(one)
        except ValueError:
            return ""
        return f'"{one}"'

    def _respell(self, text: str) -> str:
        """Return a quantity such as 50 GbE with a unit that `parse` accepts; other text is
        unchanged."""
        for spelling, unit in _SPELLINGS[self.unit].items():
            if found := re.fullmatch(rf"([0-9.]+)\s*([kKMGTmunpµμ]?i?)(?:{spelling})", text):
                return f"{found[1]} {found[2]}{unit}"
        return text

    @property
    def form(self) -> str:
        """Regular expression of the texts that `parse` reads; their range is not part of it."""
        return rf"\s*\+?{_NUMBER}\s*({_PREFIX})?({'|'.join(self.scale)})\s*"

    def __get_pydantic_json_schema__(self, *_: object) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^({self.form})$", "examples": [self.example]}

    @property
    def _expected(self) -> str:
        return f'{self.name} such as "{self.example}"'

    @property
    def _range(self) -> str:
        lowest = "more than 0" if self.minimum == 0 else f"at least {self.format(self.minimum)}"
        if self.zero_allowed:
            lowest = "0 or more" if self.minimum == 0 else f"0, or {lowest}"
        return f"{lowest} and at most {self.format(self.maximum)}"


_DECIMAL = {-12: "p", -9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T"}
_BINARY = {10: "Ki", 20: "Mi", 30: "Gi", 40: "Ti"}
_PREFIXES = {prefix: Decimal(1 << power) for power, prefix in _BINARY.items()}
for _power, _prefixes in {**_DECIMAL, -15: "f", -6: "uµμ", 3: "kK", 15: "P", 18: "E"}.items():
    _PREFIXES |= dict.fromkeys(_prefixes or ("",), Decimal(10) ** _power)
_PREFIX = "|".join(filter(None, _PREFIXES))
_NUMBER = r"([0-9][0-9_]*\.?[0-9_]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?"
_QUANTITY = re.compile(rf"([+-]?(?:{_NUMBER}|inf|nan))\s*(({_PREFIX})?([^\s0-9.+-]\S*)?)")
_BYTES = {"B": 1}
_BITRATE = {"b/s": 1, "bit/s": 1, "bps": 1, "B/s": 8}
_TIME = {"s": 1, "min": 60, "h": 3600}
_FREQUENCY = {"Hz": 1}
_SPELLINGS = {
    "B": {"[bB]ytes?|(?<=[kKMGTi])": "B"},
    "b/s": {"bE|b|bits?|bits/s|bits?/sec|(?<=[kKMGT])E?": "b/s"},
    "s": {"secs?|seconds?": "s", "minutes?|mins": "min", "hours?|hrs?": "h"},
    "Hz": {"hz|HZ|hertz|Hertz|(?<=[kKMG])": "Hz"},
}
"""Common other spellings of units, or none after a prefix, mapped to the accepted unit."""
_SEVERAL = re.compile(r"([0-9]{1,4})\s*[x×*]\s*([^x×*±]+)")
_SPREAD = re.compile(r"([^±]+?)\s*(?:±|\+/?-)\s*(?:([0-9]+\.?[0-9]*)\s*%|([^%]+?))")


def format_quantity(value: float, unit: str) -> str:
    """Return the shortest notation that parses to exactly `value`: 5000000, "B" → "5 MB"."""
    if value == 0:
        return f"0 {unit}"
    if unit == "B" and value % 1024 == 0 and value % 1000 != 0:
        power = max(p for p in _BINARY if value % (1 << p) == 0)
        return f"{int(value) >> power} {_BINARY[power]}B"
    if unit == "B" and value < 10_000 and value % 1000 != 0:
        return f"{value:g} B"  # usual notation for frames, cells and windows
    exact = Decimal(int(value)) if float(value).is_integer() else Decimal(repr(float(value)))
    power = max((p for p in _DECIMAL if exact >= Decimal(10) ** p), default=-12)
    mantissa = (exact.scaleb(-power)).normalize()
    return f"{mantissa:f} {_DECIMAL[power]}{unit}"


def dimension_of(field: FieldInfo) -> Dimension | None:
    """Return the dimension of a model's field, if it has one."""
    return next((item for item in field.metadata if isinstance(item, Dimension)), None)


def example_of(field: FieldInfo) -> str:
    """Return an example of a quantity's value: its default, unless that is 0 or missing."""
    if (dimension := dimension_of(field)) is None:
        return ""
    is_set = isinstance(field.default, int | float) and field.default > 0
    return dimension.format(field.default) if is_set else dimension.example


def reading(dimension: Dimension) -> Any:
    """Return the annotations for the type of a quantity: `Annotated[int, *reading(SIZE)]`."""
    shown = PlainSerializer(dimension.format, return_type=str, when_used="json")
    return BeforeValidator(dimension.parse), shown, dimension


SIZE = Dimension("size", "B", _BYTES, "5 MB", whole=True, maximum=1e15)
RATE = Dimension("rate", "b/s", _BITRATE, "25 Gb/s", whole=True, maximum=1e15, minimum=1e6)
TIME = Dimension("time", "s", _TIME, "10 us", whole=False, maximum=1e4, minimum=1e-12)
DURATION = replace(TIME, example="500 ms")
FREQUENCY = Dimension(
    "frequency", "Hz", _FREQUENCY, "12 kHz", whole=False, maximum=1e9, minimum=1e-6
)


def _positive(dimension: Dimension) -> Dimension:
    return replace(dimension, zero_allowed=False)


Bytes = Annotated[int, *reading(SIZE)]
PositiveBytes = Annotated[int, *reading(_positive(SIZE))]
BitRateOrNone = Annotated[int, *reading(RATE)]
BitRate = Annotated[int, *reading(_positive(RATE))]
Seconds = Annotated[float, *reading(TIME)]
PositiveSeconds = Annotated[float, *reading(_positive(TIME))]
Duration = Annotated[float, *reading(DURATION)]
"""Time of a run, a fault or a timeout; `Seconds` are delays and costs."""
PositiveDuration = Annotated[float, *reading(_positive(DURATION))]
FrequencyOrNone = Annotated[float, *reading(FREQUENCY)]
