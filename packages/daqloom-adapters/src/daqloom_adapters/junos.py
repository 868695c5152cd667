"""A switch with Junos and a shared memory, such as a QFX5120, by NETCONF over SSH: size of the
egress buffer that all its ports share, and dynamic threshold of their queues (one for all
ports)."""

import contextlib
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from lxml import etree
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from daqloom.base.words import did_you_mean
from daqloom.device.adapter import AdapterError, PortBuffer
from daqloom.device.credentials import Credentials
from daqloom.scenario.quantities import PositiveBytes
from daqloom_adapters.netconf import Netconf, NetconfOptions, one_line

EGRESS = "class-of-service shared-buffer egress"
LOSSY = f"{EGRESS} buffer-partition lossy"
ALPHAS = tuple(2.0**power for power in range(-7, 4))
"""Alpha for each value of `dynamic-threshold`: 1/128 for 0, 8 for 10."""
NEEDED = ("candidate", "confirmed-commit", "validate")
_NUMBER = re.compile("[0-9]{1,3}")
_PORT = re.compile(r"[A-Za-z0-9./:_-]{1,64}")


class JunosOptions(NetconfOptions):
    """Options of the adapter for a switch with Junos."""

    buffer: PositiveBytes
    """Buffer shared by lossy traffic at `percent 100`: the lossy part of the egress buffer in `show
    class-of-service shared-buffer`, which is less than the memory of the switch (B)."""


class _Statements(BaseModel):
    """Configuration statements that the adapter sets; None: absent."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    percent: int | None = Field(ge=0, le=100)
    threshold: int | None = Field(ge=0, lt=len(ALPHAS))
    partition: bool
    """Whether the lossy partition has any statement, even an empty one."""

    def lines_to(self, then: "_Statements") -> list[str]:
        """Return the configuration lines that change these statements into `then`."""
        lines = []
        if then.percent is None and self.percent is not None:
            lines.append(f"delete {EGRESS} percent")
        elif then.percent != self.percent:
            lines.append(f"set {EGRESS} percent {then.percent}")
        if then.threshold is None and self.threshold is not None:
            created = LOSSY if not then.partition else f"{LOSSY} dynamic-threshold"
            lines.append(f"delete {created}")
        elif then.threshold != self.threshold:
            lines.append(f"set {LOSSY} dynamic-threshold {then.threshold}")
        return lines


class Junos:
    """A switch with two adjustable statements about its shared buffer. Each change stops the
    traffic on all its ports for a moment."""

    Options = JunosOptions
    settable: ClassVar[frozenset[str]] = frozenset({"shared_bytes", "alpha"})
    rounding: ClassVar[float] = 0.01

    def __init__(
        self, options: JunosOptions, ports: Sequence[str], credentials: Credentials | None = None
    ) -> None:
        self._options, self._ports = options, ports
        self._device = Netconf(options, credentials or Credentials())

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as entered:
            entered.enter_context(self._device)
            self._device.needs(NEEDED)
            self._check_ports()
            entered.pop_all()
        return self

    def __exit__(self, *about: object) -> None:
        self._device.__exit__(*about)

    def identity(self) -> str:
        """Return the serial number of the chassis, or the address if the number is not readable."""
        request = etree.Element("get-chassis-inventory")
        with contextlib.suppress(AdapterError):
            reply = self._device.ask("get-chassis-inventory", self._device.manager.rpc, request)
            if found := reply.xpath("//chassis-inventory/chassis/serial-number/text()"):
                return f"chassis {str(found[0]).strip()}"
        return self._device.address_identity()

    def plan(self, desired: PortBuffer) -> list[str]:
        """Return the configuration lines and the commits; empty if nothing changes."""
        now = self._statements()
        lines = now.lines_to(self._target(now, desired))
        commits = [f"commit confirmed {self._confirm_minutes}", "commit"]
        return [*lines, *commits] if lines else []

    def save(self) -> dict[str, Any]:
        """Return the statements that `apply` may change."""
        return self._statements().model_dump()

    def apply(self, desired: PortBuffer) -> None:
        """Set the statements, unless the switch already has these values."""
        now = self._statements()
        self._change(now, self._target(now, desired))

    def applied(self) -> Mapping[str, PortBuffer]:
        """Return the limits in the active configuration, including inherited groups. Alpha is None
        if the switch uses its default, or if schedulers have separate thresholds."""
        active = self._configuration(inherit=True)
        found = self._statements_of(active)
        alpha = None
        if found.threshold is not None and not _schedulers(active):
            alpha = ALPHAS[found.threshold]
        percent = 100 if found.percent is None else found.percent
        buffer = PortBuffer(shared_bytes=round(self._options.buffer * percent / 100), alpha=alpha)
        return dict.fromkeys(self._ports, buffer)

    def restore(self, saved: dict[str, Any]) -> None:
        """Set or delete the statements, as they were saved."""
        try:
            then = _Statements.model_validate(saved)
        except ValidationError:
            raise AdapterError(f"{self._where}: its saved state is damaged") from None
        self._change(self._statements(), then)

    @property
    def _where(self) -> str:
        return self._options.address

    @property
    def _confirm_minutes(self) -> int:
        """Minutes until the switch reverts an unconfirmed commit: one timeout to read the
        configuration back, one for the second commit, and one in reserve."""
        return math.ceil(3 * self._options.timeout / 60)

    def _check_ports(self) -> None:
        request = etree.Element("get-interface-information")
        etree.SubElement(request, "terse")
        reply = self._device.ask("get-interface-information", self._device.manager.rpc, request)
        names = {str(name).strip() for name in reply.xpath("//physical-interface/name/text()")}
        known = sorted(name for name in names if _PORT.fullmatch(name))
        for port in self._ports:
            if port not in known:
                some = ", ".join(known[:8]) or "none"
                hint = did_you_mean(port, known, f"known are {some}")
                raise AdapterError(f"{self._where} has no port {port}; {hint}")

    def _configuration(self, inherit: bool = False) -> Any:
        """Return the reply with the active class-of-service configuration."""
        request = etree.Element("get-configuration", database="committed")
        if inherit:
            request.set("inherit", "inherit")
        etree.SubElement(etree.SubElement(request, "configuration"), "class-of-service")
        reply = self._device.ask("get-configuration", self._device.manager.rpc, request)
        if len(reply.xpath("//configuration")) != 1:
            raise AdapterError(f"{self._where} answers `get-configuration` with no configuration")
        if reply.xpath("//*[self::class-of-service or ancestor-or-self::shared-buffer][@inactive]"):
            raise AdapterError(
                f"{self._where} has a deactivated statement in class-of-service shared-buffer; "
                "activate or delete it"
            )
        return reply

    def _statements(self) -> _Statements:
        return self._statements_of(self._configuration())

    def _statements_of(self, reply: Any) -> _Statements:
        egress = "//class-of-service/shared-buffer/egress"
        lossy = f"{egress}/buffer-partition[normalize-space(name)='lossy']"
        return _Statements(
            percent=self._number(reply, f"{egress}/percent", 100),
            threshold=self._number(reply, f"{lossy}/dynamic-threshold", len(ALPHAS) - 1),
            partition=bool(reply.xpath(lossy)),
        )

    def _number(self, reply: Any, path: str, most: int) -> int | None:
        """Return the numeric value of a statement; None if the statement is absent."""
        found = reply.xpath(path)
        text = " ".join((each.text or "").strip() for each in found)
        if found and not (_NUMBER.fullmatch(text) and int(text) <= most):
            raise AdapterError(
                f"{self._where} reports {path.rpartition('/')[2]} = {one_line(text)} of its shared "
                f"buffer; expected a whole number up to {most}"
            )
        return int(text) if found else None

    def _target(self, now: _Statements, desired: PortBuffer) -> _Statements:
        """Return the statements for `desired`; values that it leaves out are unchanged."""
        changed: dict[str, Any] = {}
        if desired.shared_bytes is not None:
            changed["percent"] = self._percent(desired.shared_bytes)
        if desired.alpha is not None:
            changed |= {"threshold": self._threshold(desired.alpha), "partition": True}
        return now.model_copy(update=changed)

    def _percent(self, shared_bytes: int) -> int:
        buffer = self._options.buffer
        percent = min(100, round(100 * shared_bytes / buffer))
        if abs(buffer * percent / 100 - shared_bytes) > self.rounding * shared_bytes:
            below = min(99, int(100 * shared_bytes / buffer))
            near = " and ".join(f"{round(buffer * each / 100)}" for each in (below, below + 1))
            raise AdapterError(
                f"{self._where}: shared_bytes = {shared_bytes} is not a whole percentage of "
                f"{buffer} B; the nearest are {near}"
            )
        return percent

    def _threshold(self, alpha: float) -> int:
        if alpha not in ALPHAS:
            near = sorted(sorted(ALPHAS, key=lambda each: abs(each - alpha))[:2])
            raise AdapterError(
                f"{self._where}: alpha = {alpha:g} is no power of two from 1/128 to 8; the nearest "
                f"are {near[0]:g} and {near[1]:g}"
            )
        if own := _schedulers(self._configuration(inherit=True)):
            raise AdapterError(
                f"{self._where}: the scheduler {one_line(own[0])} has a buffer-dynamic-threshold "
                "of its own, which overrides that of all queues; delete it"
            )
        return ALPHAS.index(alpha)

    def _change(self, now: _Statements, then: _Statements) -> None:
        """Commit, read back and confirm; the switch itself reverts an unconfirmed commit."""
        lines = now.lines_to(then)
        if not lines:
            return
        device, manager, minutes = self._device, self._device.manager, self._confirm_minutes
        device.do("lock", manager.lock, "candidate")
        try:
            device.do("load-configuration", manager.load_configuration, action="set", config=lines)
            device.do("validate", manager.validate, "candidate")
            device.do("commit confirmed", manager.commit, confirmed=True, timeout=60 * minutes)
            if self._statements().lines_to(then):
                raise AdapterError(
                    f"{self._where} has not applied `{lines[0]}` although it has accepted it; it "
                    f"reverts the commit within {minutes} min"
                )
            device.do("commit", manager.commit)
        except BaseException:
            with contextlib.suppress(AdapterError):
                device.do("discard-changes", manager.discard_changes)
            raise
        finally:
            with contextlib.suppress(AdapterError):  # the end of the session unlocks it too
                device.do("unlock", manager.unlock, "candidate")


def _schedulers(reply: Any) -> list[str]:
    """Return the names of schedulers that have a separate threshold."""
    names = reply.xpath("//class-of-service/schedulers[buffer-dynamic-threshold]/name/text()")
    return [str(name).strip() for name in names]
