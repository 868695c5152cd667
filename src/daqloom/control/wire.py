"""Between the engine's run control and the messages: its orders as messages, and reports as it
takes them."""

from typing import assert_never

from daqloom._engine import (
    ConfigureOrder,
    ConnectOrder,
    ExitOrder,
    HaltOrder,
    PrepareOrder,
    RenewOrder,
    ResetOrder,
    SendOrder,
    StartOrder,
    UnitAnswer,
    UnitHeartbeat,
    UnitPulse,
)
from daqloom.control.messages import (
    Answer,
    AnyOrder,
    Configure,
    Connect,
    Exit,
    Halt,
    Heartbeat,
    Prepare,
    Renew,
    Reset,
    Start,
)
from daqloom.control.plan import Plan


def message(sent: SendOrder, plan: Plan) -> AnyOrder | Renew:
    """Return an order of the run control as a message."""
    number, order = sent.number, sent.order
    match order:
        case ConfigureOrder():
            return Configure(
                order=number,
                unit=sent.unit,
                run=plan.run,
                units=plan.rules.units,
                heartbeat_s=plan.rules.heartbeat_s,
                lease_s=order.lease_s,
                trace_stages=plan.trace_stages,
                trace_arrivals=plan.trace_arrivals,
                scenario=dict(plan.scenario),
            )
        case PrepareOrder():
            return Prepare(
                order=number,
                epoch=order.epoch,
                members=tuple(order.members),
                moved=tuple((each.unit, each.readout, each.builder) for each in order.moved),
            )
        case ConnectOrder():
            addresses = tuple(order.addresses)
            return Connect(order=number, addresses=addresses, timeout_s=order.timeout_s)
        case StartOrder():
            return Start(
                order=number,
                first_mep=order.first_mep,
                mep_end=order.mep_end,
                last_report=order.last_report,
            )
        case HaltOrder():
            return Halt(order=number, lost=tuple(order.lost), timeout_s=order.timeout_s)
        case ResetOrder():
            return Reset(order=number)
        case ExitOrder():
            return Exit(order=number)
        case RenewOrder():
            return Renew(epoch=order.epoch, mep_end=order.mep_end, last_report=order.last_report)
        case _:
            assert_never(order)


def report(message: Heartbeat | Answer) -> UnitHeartbeat | UnitAnswer:
    """Return a message of a unit as a report to the run control."""
    if isinstance(message, Answer):
        return UnitAnswer(
            number=message.number,
            order=message.order,
            state=message.state,
            failure=message.failure,
            address=message.address,
            missing=list(message.missing),
            next_mep=message.next_mep,
            counted=message.counted,
        )
    pulse = message.pulse
    return UnitHeartbeat(
        number=message.number,
        pulse=UnitPulse(
            epoch=pulse.epoch,
            state=pulse.state,
            beats=pulse.beats,
            steps=pulse.steps,
            waits=pulse.waits,
            next_mep=pulse.next_mep,
            suspects=list(pulse.suspects),
            failure=pulse.failure,
        ),
        ended=message.ended,
        counted=message.counted,
    )
