#include "softswitch/forwarder.hpp"

#include <fmt/format.h>

#include <utility>

namespace daqloom::softswitch {

using base::Time;

namespace {

/// Addresses that no bridge forwards (IEEE 802.1Q, table 8-1): pause frames, spanning tree, LLDP.
constexpr std::uint64_t kLinkLocal = 0x0180c2000000;
constexpr std::uint64_t kLinkLocalMask = 0xfffffffffff0;

/// Encoding of an action as the value of a rule: bit position of `what`.
constexpr std::uint32_t kWhat = 29;
constexpr std::uint32_t kNumber = (std::uint32_t{1} << kWhat) - 1;

std::uint32_t value_of(const Action& action) {
    const std::uint32_t number = action.what == Action::What::queue  ? action.ring.value()
                                 : action.what == Action::What::port ? action.port.value()
                                                                     : 0;
    return static_cast<std::uint32_t>(action.what) << kWhat | number;
}

Action action_of(std::uint32_t value) {
    const std::uint32_t number = value & kNumber;
    Action action;
    action.what = static_cast<Action::What>(value >> kWhat);
    if (action.what == Action::What::queue) {
        action.ring = RingIndex(number);
    } else if (action.what == Action::What::port) {
        action.port = PortIndex(number);
    }
    return action;
}

MacTableConfig addresses_of(const ForwarderConfig& config) {
    MacTableConfig addresses = config.addresses;
    addresses.ports = config.output.ports;
    return addresses;
}

base::expected<void> check(const ForwarderConfig& config) {
    const OutputConfig& output = config.output;
    DAQLOOM_REFUSE_IF(output.ports < 1 || config.classes < 1 || config.classes > kClasses,
                      "{} ports with {} classes; expected one port at least, and 1 to {} classes",
                      output.ports, config.classes, kClasses);
    DAQLOOM_REFUSE_IF(output.rings.size() < std::size_t{output.ports} * config.classes ||
                          output.rings.size() > kNumber,
                      "{} rings; expected one for each class of each port, {} at least",
                      output.rings.size(), std::size_t{output.ports} * config.classes);
    for (std::size_t ring = 0; ring < output.rings.size(); ++ring) {
        const RingConfig& given = output.rings[ring];
        const bool is_its_ports = ring >= std::size_t{output.ports} * config.classes ||
                                  given.port == PortIndex(ring / config.classes);
        DAQLOOM_REFUSE_IF(
            given.port.value() >= output.ports || given.priority >= kClasses || given.packets < 1 ||
                given.bytes < 1 || given.rate.bps < 0 || !is_its_ports,
            "ring {} of port {}, class {}, {} packets, {} B, {} b/s; expected one "
            "of the {} ports, in their order first, a class below {}, and room for a packet",
            ring, given.port.value(), given.priority, given.packets, given.bytes, given.rate.bps,
            output.ports, kClasses);
    }
    const SharedMemoryConfig& shared = output.shared;
    DAQLOOM_REFUSE_IF(shared.buffer < 0 || shared.dedicated < 0 ||
                          shared.dedicated > shared.buffer || !(shared.alpha > 0) ||
                          shared.port_limit < 0 || shared.cell_size < 0 || shared.cell_metadata < 0,
                      "shared memory of {} B, of which {} B are dedicated, with alpha {}; "
                      "expected a dedicated part no larger than all, and alpha above 0",
                      shared.buffer, shared.dedicated, shared.alpha);
    DAQLOOM_REFUSE_IF(
        config.share.cores < 1 || config.share.number >= config.share.cores ||
            (config.share.cores > 1 && shared.buffer > 0),
        "core {} of {}; expected a number below that, and one core for a shared memory",
        config.share.number, config.share.cores);
    DAQLOOM_REFUSE_IF(config.limits.size() > output.ports,
                      "limits of {} ports; expected {} at most", config.limits.size(),
                      output.ports);
    DAQLOOM_REFUSE_IF(config.mirror != PortIndex::none() && config.mirror.value() >= output.ports,
                      "mirror port {}; expected one of the {} ports", config.mirror.value(),
                      output.ports);
    return {};
}

}  // namespace

base::expected<Forwarder> Forwarder::make(const ForwarderConfig& config) {
    DAQLOOM_CHECK(check(config));
    return Forwarder(config);
}

Forwarder::Forwarder(const ForwarderConfig& config)
    : classes_(config.classes),
      share_(config.share),
      floods_unknown_(config.floods_unknown),
      mirror_(config.mirror),
      is_mirrored_(config.output.rings.size()),
      queues_(config.output),
      pauses_(config.output.rings.size(), config.output.ports),
      addresses_(addresses_of(config)),
      flow_table_(config.most_flow_entries, config.most_meters),
      rules_(config.most_rules),
      counters_(config.output.ports),
      floods_(config.output.ports) {
    for (const RingConfig& ring : config.output.rings) {
        port_of_.push_back(ring.port);
    }
    for (std::size_t port = 0; port < config.limits.size(); ++port) {
        set_limits(PortIndex(port), config.limits[port]);
    }
}

void Forwarder::set_mirrored(RingIndex ring, bool is_mirrored) {
    if (mirror_ != PortIndex::none() && is_mirrored_[ring.value()] != is_mirrored) {
        is_mirrored_[ring.value()] = is_mirrored;
        is_mirrored ? ++mirrors_ : --mirrors_;
    }
}

bool Forwarder::set_limits(PortIndex port, const PortLimits& limits) {
    if (port.value() >= ports()) {
        return false;
    }
    floods_[port.value()].each =
        limits.floods > 0 ? base::seconds(1) / limits.floods : Time::zero();
    addresses_.set_most(port, limits.addresses);
    return true;
}

bool Forwarder::is_there(const Action& action) const {
    return (action.what != Action::What::queue || action.ring.value() < port_of_.size()) &&
           (action.what != Action::What::port || action.port.value() < ports());
}

bool Forwarder::set_rule(const Match& match, std::uint16_t priority, const Action& action) {
    flows_.forget();
    return is_there(action) && rules_.set(match, priority, value_of(action));
}

bool Forwarder::set_flow(FlowIndex index, const FlowEntry& entry) {
    flows_.forget();
    return is_there(entry.action) && flow_table_.set(index, entry);
}

bool Forwarder::set_meter(MeterIndex index, const MeterConfig& config) {
    if (index.value() >= flow_table_.meters().size()) {
        return false;
    }
    flow_table_.meters().set(index, config);
    return true;
}

bool Forwarder::may_flood(PortIndex ingress, Time now) {
    constexpr Time burst = base::milliseconds(100);
    Floods& floods = floods_[ingress.value()];
    return floods.each == Time::zero() ||
           floods.bucket.takes(floods.each, std::max(burst, floods.each), now);
}

Forwarder::Decision Forwarder::decide(std::span<const std::uint8_t> frame, PortIndex ingress,
                                      Time now) {
    const Headers headers = headers_of(frame);
    if (!headers.is_frame) {
        return {.cause = &PortCounters::malformed};
    }
    const auto learned = addresses_.learn(headers.source, headers.vlan, ingress, now);
    const bool is_news = learned == MacTable::Learned::news;
    counters_[ingress.value()].not_learned += learned == MacTable::Learned::refused ? 1 : 0;
    if ((headers.destination.value & kLinkLocalMask) == kLinkLocal) {
        return {.cause = &PortCounters::link_local, .is_news = is_news};
    }
    const FlowIndex entry = flow_table_.find(headers, ingress.value());
    const Action action = entry == FlowIndex::none() ? Action{} : flow_table_.action(entry);
    Decision decision = action.what == Action::What::forward ? by_rule(headers, ingress, now)
                                                             : done(action, headers);
    decision.entry = entry;
    decision.is_news = is_news;
    return decision;
}

Forwarder::Decision Forwarder::by_rule(const Headers& headers, PortIndex ingress, Time now) const {
    const auto rule = rules_.find(headers, ingress.value());
    const Action action = rule ? action_of(*rule) : Action{};
    return action.what == Action::What::forward ? by_address(headers, ingress, now)
                                                : done(action, headers);
}

/// Decision for an action, which must not be `forward`.
Forwarder::Decision Forwarder::done(const Action& action, const Headers& headers) const {
    switch (action.what) {
        case Action::What::queue:
            return {.ring = action.ring};
        case Action::What::port:
            return {.ring = ring_of(action.port, headers.priority)};
        case Action::What::flood:
        case Action::What::forward:
            return {.priority = headers.priority};
        case Action::What::drop:
            break;
    }
    return {.cause = &PortCounters::by_rule};
}

Forwarder::Decision Forwarder::by_address(const Headers& headers, PortIndex ingress,
                                          Time now) const {
    if (!headers.destination.is_group()) {
        if (const auto port = addresses_.find(headers.destination, headers.vlan, now)) {
            return *port == ingress ? Decision{.cause = &PortCounters::back}
                                    : Decision{.ring = ring_of(*port, headers.priority)};
        }
        if (!floods_unknown_) {
            return {.cause = &PortCounters::unknown};
        }
    }
    return {.priority = headers.priority};
}

}  // namespace daqloom::softswitch
