// Changes of links and tables during a run.
#include <cmath>

#include "infiniband/network.hpp"

namespace daqloom::infiniband {

namespace {

constexpr int kMostLinkRetries = 8;  ///< per packet, which is lost afterwards

}  // namespace

void Network::plan_changes(const FabricConfig& config) {
    changes_ = config.changes;
    reroutings_ = config.reroutings;
    std::uint32_t index = 0;
    for (const LinkChange& change : changes_) {
        events_.push({change.at, kChange, index++});
    }
    for (const network::Rerouting& rerouting : reroutings_) {
        events_.push({rerouting.at, kChange, index++});
    }
    if (changes_.empty()) {
        return;
    }
    for (const Cable& cable : config.cables) {
        links_.push_back(port_index(cable.a));
        links_.push_back(port_index(cable.b));
    }
    wires_.resize(outputs_.size());
}

void Network::on_change(std::uint32_t index) {
    if (index < changes_.size()) {
        apply(changes_[index]);
    } else {
        set_forwarding(reroutings_[index - changes_.size()].forwarding);
    }
}

void Network::apply(const LinkChange& change) {
    const PortIndex output = links_[change.link];
    switch (change.what) {
        case LinkChange::What::rate:
            outputs_[output].clock = base::WireClock(change.rate);
            break;
        case LinkChange::What::errors:
            wires_[output].bit_errors = change.bit_errors;
            wires_[output].link_retry = change.link_retry;
            break;
        case LinkChange::What::dark:
            set_state(output, LinkState::dark, change.at);
            break;
        case LinkChange::What::down:
            set_state(output, LinkState::down, change.at);
            break;
        case LinkChange::What::up:
            set_state(output, LinkState::up, change.at);
            break;
    }
}

void Network::set_state(PortIndex output, LinkState state, base::Time now) {
    Output& out = outputs_[output];
    if (out.state == state) {
        return;
    }
    const std::int64_t endless =
        (state == LinkState::down ? kEndless : 0) - (out.state == LinkState::down ? kEndless : 0);
    for (const VirtualLane lane : base::IndexRange<VirtualLane>(lanes_)) {
        credits_[on(output, lane)] += endless;
    }
    if (out.state == LinkState::up) {
        base::Ring<OnWire>& packets = wires_[output].packets;
        for (; !packets.empty(); packets.pop()) {
            const OnWire& one = packets.front();
            if (one.tail > now && packets_[one.packet].life == one.life) {
                cut(output, one.packet);
            }
        }
    }
    wait_for(output, PortWait::nothing, 0, now);
    out.state = state;
    touch(output);
    if (state == LinkState::up) {  // for updates that were lost or never sent
        for (const VirtualLane lane : base::IndexRange<VirtualLane>(lanes_)) {
            request_update(output, lane, now);
        }
    }
}

/// Returns when a packet begins to leave, which link-level retries may delay; marks a lost packet.
base::Time Network::begin_on_wire(PortIndex output, PacketIndex place, base::Time now) {
    Wire& wire = wires_[output];
    const Output& out = outputs_[output];
    if (out.state == LinkState::down) {
        return now;
    }
    const base::Bytes bytes = packets_[place].bytes;
    base::Time begin = now;
    if (wire.bit_errors > 0) {
        const double bits = 8 * static_cast<double>(bytes);
        const double is_whole = std::exp(bits * std::log1p(-wire.bit_errors));
        for (int retries = 0; errors_.uniform() >= is_whole; ++retries) {
            if (wire.link_retry == base::Time::zero() || retries == kMostLinkRetries) {
                cut(output, place);
                break;
            }
            begin += wire.link_retry;
        }
    }
    while (!wire.packets.empty() && wire.packets.front().tail <= now) {
        wire.packets.pop();
    }
    wire.packets.push({place, packets_[place].life, begin + out.clock(bytes) + out.delay});
    return begin;
}

/// Marks a packet on the wire of this output as lost. The lost packet still occupies every wire of
/// its path, because a switch may already have begun to forward it; its destination drops it.
void Network::cut(PortIndex output, PacketIndex place) {
    Packet& packet = packets_[place];
    outputs_[output].counters.cut += packet.is_bad ? 0 : 1;
    packet.is_bad = true;
}

/// Drops a packet at an output whose link is down.
void Network::drop(PortIndex output, PacketIndex place) {
    const bool is_bad = packets_[place].is_bad;
    ++(is_bad ? bad_ : dropped_);
    outputs_[output].counters.dropped += is_bad ? 0 : 1;
    packets_.release(place);
}

/// Whether a credit update is lost because its link is not up; the next update includes its blocks.
bool Network::lose_update(PortIndex output, VirtualLane lane, std::int64_t blocks) {
    const PortIndex from = outputs_[output].peer;
    if (outputs_[from].state == LinkState::up) {
        return false;
    }
    accounts_[on(from, lane)].announced -= blocks;
    return true;
}

}  // namespace daqloom::infiniband
