// Changes of links and of forwarding tables during a run.
#include "ethernet/network.hpp"

namespace daqloom::ethernet {

using base::Time;

void Network::plan_changes(std::uint32_t kind) {
    for (std::size_t i = 0; i < changes_.size(); ++i) {
        events_.push({changes_[i].at, kind, static_cast<std::uint32_t>(i)});
    }
    for (std::size_t i = 0; i < reroutings_.size(); ++i) {
        events_.push({reroutings_[i].at, kind, static_cast<std::uint32_t>(changes_.size() + i)});
    }
}

void Network::on_change(std::uint32_t index) {
    if (index < changes_.size()) {
        apply(changes_[index]);
    } else {
        const network::Rerouting& now = reroutings_[index - changes_.size()];
        set_routes(now.forwarding, now.groups);
    }
}

void Network::apply(const LinkChange& change) {
    const LinkIndex link = change.link;
    ScheduledPort& port = *schedulers_[link];
    switch (change.what) {
        case LinkChange::What::rate:
            ports_[link].set_rate(change.rate);
            break;
        case LinkChange::What::pace:
            port.set_pace(change.rate);
            break;
        case LinkChange::What::hold:
            port.hold(change.traffic_class);
            break;
        case LinkChange::What::resume:
            port.resume(change.traffic_class);
            break;
        case LinkChange::What::down:
            watched_ = true;
            port.go_down(ports_[link].size(), change.drops);
            if (change.drops) {
                drop_waiting(link, change.at);
            }
            break;
        case LinkChange::What::up:
            port.go_up();
            break;
        case LinkChange::What::errors:
            watched_ = true;
            bit_errors_.resize(ports_.size());
            bit_errors_[link] = change.bit_errors;
            break;
    }
    wake(link, change.at);
}

/// Drops the frames that wait at a switch's output; a host's waiting frames are kept.
void Network::drop_waiting(LinkIndex link, Time now) {
    const Wiring wiring = ports_[link].wiring();
    SwitchNode& node = switches_[wiring.from_switch];
    schedulers_[link]->clear([&](const Frame& frame) {
        node.buffer.release(wiring.from_port, frame.bytes);
        drop(node, wiring.from_port, link, frame, now);
    });
}

}  // namespace daqloom::ethernet
