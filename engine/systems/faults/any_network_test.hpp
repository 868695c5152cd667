// Random small networks in which links fail and tables change during a run, for tests and fuzzing.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/byte_source_test.hpp"
#include "base/units.hpp"
#include "ethernet/network_config.hpp"
#include "infiniband/fabric_by_hand_test.hpp"
#include "infiniband/random_fabric_test.hpp"
#include "network/graph.hpp"
#include "network/rerouting.hpp"
#include "systems/rack/check_test.hpp"
#include "transport/rdma/config.hpp"

namespace daqloom::systems {

struct AnyNetwork {
    std::variant<ethernet::NetworkConfig, infiniband::FabricConfig> network;
    std::variant<transport::TcpConfig, transport::RdmaConfig> transport;
    /// Time from which all links are whole again; never if some stay broken.
    base::Time whole_from;

    [[nodiscard]] bool is_ethernet() const { return network.index() == 0; }
    [[nodiscard]] bool is_tcp() const { return transport.index() == 0; }
    [[nodiscard]] const network::Graph& graph() const {
        return std::visit([](const auto& each) -> const network::Graph& { return each; }, network);
    }
    /// Whether lost packets are sent again.
    [[nodiscard]] bool retries() const {
        const auto* rdma = std::get_if<transport::RdmaConfig>(&transport);
        return rdma == nullptr || (rdma->acknowledge && rdma->retry_timeout > base::Time::zero());
    }
};

/// Forwarding along shortest paths of unbroken cables; of several paths, the first from `begin` on.
inline network::Forwarding shortest_ways(const network::Graph& graph,
                                         const std::vector<bool>& is_broken, std::size_t begin) {
    network::Forwarding ways(std::size_t{graph.switches()} * graph.hosts, 0);
    for (std::uint32_t host = 0; host < graph.hosts; ++host) {
        std::vector<bool> is_reached(graph.nodes(), false);
        is_reached[host] = true;
        for (bool grows = true; grows;) {
            std::vector<network::End> next;
            for (std::size_t i = 0; i < graph.cables.size(); ++i) {
                const std::size_t at = (begin + i) % graph.cables.size();
                const network::Cable& cable = graph.cables[at];
                for (const auto& [from, to] :
                     {std::pair{cable.a, cable.b}, std::pair{cable.b, cable.a}}) {
                    if (!is_broken[at] && !graph.is_host(from.node) &&
                        !is_reached[from.node.value()] && is_reached[to.node.value()]) {
                        next.push_back(from);
                    }
                }
            }
            for (const network::End from : next) {
                const std::size_t row = std::size_t{from.node.value() - graph.hosts} * graph.hosts;
                ways[row + host] = is_reached[from.node.value()] ? ways[row + host] : from.port;
                is_reached[from.node.value()] = true;
            }
            grows = !next.empty();
        }
    }
    return ways;
}

/// Faults in a network of any technology: spans in which links are broken, held or degraded.
class AnyBreaks {
  public:
    /// Draws faults, none of which is shorter than `shortest`.
    AnyBreaks(base::ByteSource& from, const network::Graph& graph, base::Time shortest)
        : graph_(graph), shortest_(shortest), detection_(base::microseconds(from.number(0, 100))) {
        for (auto faults = from.number(0, 5); faults > 0; --faults) {
            draw(from);
        }
        if (from.coin()) {
            draw_tables(from);
        }
    }

    /// Changes of links in the order of time, in the type of the technology.
    template <class Change>
    [[nodiscard]] std::vector<Change> changes() const {
        std::vector<Change> all;
        for (std::uint32_t link = 0; link < 2 * graph_.cables.size(); ++link) {
            add_states(link, all);
        }
        for (const Degraded& each : degraded_) {
            Change change = change_of<Change>(each.span.begin, each.link);
            change.what = each.rate.bps > 0 ? Change::What::rate : Change::What::errors;
            change.rate = each.rate;
            change.bit_errors = each.bit_errors;
            if constexpr (std::is_same_v<Change, infiniband::LinkChange>) {
                change.link_retry = each.link_retry;
            }
            all.push_back(change);
            if (each.span.end != base::Time::never()) {
                change.at = each.span.end;
                change.rate = graph_.cables[each.link / 2].rate;
                change.bit_errors = 0;
                all.push_back(change);
            }
        }
        if constexpr (std::is_same_v<Change, ethernet::LinkChange>) {
            for (const Break& each : holds_) {
                Change change = change_of<Change>(each.dark.begin, each.link);
                change.what = Change::What::hold;
                all.push_back(change);
                if (each.dark.end != base::Time::never()) {
                    change.at = each.dark.end;
                    change.what = Change::What::resume;
                    all.push_back(change);
                }
            }
        }
        std::ranges::stable_sort(all, {}, &Change::at);
        return all;
    }
    [[nodiscard]] const std::vector<network::Rerouting>& reroutings() const { return reroutings_; }
    [[nodiscard]] base::Time whole_from() const { return whole_from_; }

  private:
    struct Span {
        base::Time begin;
        base::Time end;

        [[nodiscard]] bool holds(base::Time at) const { return begin <= at && at < end; }
    };
    /// Break of a link: `dark` from its begin on, `down` from the time at which both ends know it.
    struct Break {
        std::uint32_t link = 0;
        Span dark;
        Span down;
    };
    struct Degraded {
        std::uint32_t link = 0;
        Span span;
        base::BitRate rate{0};  ///< 0: the link has bit errors instead
        double bit_errors = 0;
        base::Time link_retry{};
    };

    [[nodiscard]] Span any_span(base::ByteSource& from) const {
        const base::Time begin = base::nanoseconds(1 + 64 * from.number(0, 8'000));
        const base::Time lasts =
            shortest_ + base::nanoseconds(from.number(0, 500) * from.one_of({0, 1, 1'000, 1'000}));
        return {begin, from.byte() % 8 == 0 ? base::Time::never() : begin + lasts};
    }

    void draw(base::ByteSource& from) {
        const auto cables = static_cast<std::uint32_t>(graph_.cables.size());
        const auto cable = static_cast<std::uint32_t>(from.number(0, cables - 1));
        const std::uint32_t link = 2 * cable + (from.coin() ? 1 : 0);
        const Span span = any_span(from);
        switch (from.byte() % 7) {
            case 0:
                break_cable(cable, span);
                break;
            case 1:
                break_link(link, span);
                break;
            case 2:
                break_switch(network::SwitchIndex(from.byte() % graph_.switches()), span);
                break;
            case 3:
                flap(cable, span, from.number(2, 4));
                break;
            case 4:
                hold(link, span);
                break;
            case 5: {
                const std::int64_t usual = graph_.cables[cable].rate.bps;
                degrade({.link = link, .span = span, .rate = {usual / from.one_of({2, 10, 40})}});
                break;
            }
            default:
                degrade({.link = link,
                         .span = span,
                         .bit_errors = from.one_of({1e-7, 1e-6, 1e-5, 1e-3}),
                         .link_retry = base::nanoseconds(from.one_of({0, 0, 100, 3'000}))});
        }
    }

    void break_link(std::uint32_t link, Span span) {
        const bool is_noticed =
            span.end == base::Time::never() || span.begin + detection_ < span.end;
        const base::Time known = is_noticed ? span.begin + detection_ : span.end;
        breaks_.push_back({link, span, {known, span.end}});
        breaks_.push_back({link ^ 1U, {span.end, span.end}, {known, span.end}});
        whole_from_ = std::max(whole_from_, span.end);
    }
    void break_cable(std::uint32_t cable, Span span) {
        break_link(2 * cable, span);
        break_link(2 * cable + 1, span);
    }
    void break_switch(network::SwitchIndex at, Span span) {
        for (std::uint32_t cable = 0; cable < graph_.cables.size(); ++cable) {
            const network::Cable& each = graph_.cables[cable];
            if (each.a.node == graph_.node_of(at) || each.b.node == graph_.node_of(at)) {
                break_cable(cable, span);
            }
        }
    }
    void flap(std::uint32_t cable, Span span, std::int64_t times) {
        const base::Time lasts = std::min(span.end - span.begin, shortest_ * 2);
        for (; times > 0; --times) {
            break_cable(cable, {span.begin, span.begin + lasts});
            span.begin += lasts * 2;
        }
    }
    /// Holds an Ethernet port: it sends nothing.
    void hold(std::uint32_t link, Span span) {
        holds_.push_back({link, span, {}});
        whole_from_ = std::max(whole_from_, span.end);
    }
    void degrade(const Degraded& what) {
        degraded_.push_back(what);
        whole_from_ = std::max(whole_from_, what.span.end);
    }

    /// Draws new forwarding tables for each time at which the known state of a link changes.
    void draw_tables(base::ByteSource& from) {
        const base::Time sweep = base::microseconds(from.number(0, 200));
        const std::size_t begin = from.byte();
        std::vector<base::Time> known = {base::microseconds(from.number(0, 100))};
        for (const Break& each : breaks_) {
            known.push_back(each.down.begin);
            known.push_back(each.down.end);
        }
        std::ranges::sort(known);
        known.erase(std::ranges::unique(known).begin(), known.end());
        for (const base::Time at : known) {
            if (at == base::Time::never()) {
                break;
            }
            std::vector<bool> is_broken(graph_.cables.size(), false);
            for (const Break& each : breaks_) {
                is_broken[each.link / 2] = is_broken[each.link / 2] || each.down.holds(at);
            }
            reroutings_.push_back({at + sweep, shortest_ways(graph_, is_broken, begin), {}});
            if (whole_from_ != base::Time::never()) {
                whole_from_ = std::max(whole_from_, at + sweep);
            }
        }
    }

    enum class State : std::uint8_t { up, dark, down };

    template <class Change>
    [[nodiscard]] Change change_of(base::Time at, std::uint32_t link) const {
        Change change;
        change.at = at;
        change.link = decltype(change.link)(link);
        return change;
    }
    template <class Change>
    void add_states(std::uint32_t link, std::vector<Change>& all) const {
        std::vector<base::Time> times;
        for (const Break& each : breaks_) {
            if (each.link == link) {
                times.insert(times.end(),
                             {each.dark.begin, each.dark.end, each.down.begin, each.down.end});
            }
        }
        std::ranges::sort(times);
        State before = State::up;
        for (const base::Time at : times) {
            State now = State::up;
            for (const Break& each : breaks_) {
                if (each.link == link && at != base::Time::never()) {
                    now = each.down.holds(at)   ? State::down
                          : each.dark.holds(at) ? std::max(now, State::dark)
                                                : now;
                }
            }
            if (now != std::exchange(before, now) && at != base::Time::never()) {
                all.push_back(state_change<Change>(at, link, now));
            }
        }
    }
    template <class Change>
    [[nodiscard]] Change state_change(base::Time at, std::uint32_t link, State state) const {
        Change change = change_of<Change>(at, link);
        if constexpr (std::is_same_v<Change, ethernet::LinkChange>) {
            const network::Cable& cable = graph_.cables[link / 2];
            const network::NodeIndex begins = (link % 2 == 0 ? cable.a : cable.b).node;
            change.what = state == State::up ? Change::What::up : Change::What::down;
            change.drops = state == State::down && !graph_.is_host(begins);
        } else {
            change.what = state == State::up     ? Change::What::up
                          : state == State::dark ? Change::What::dark
                                                 : Change::What::down;
        }
        return change;
    }

    const network::Graph& graph_;
    base::Time shortest_;
    base::Time detection_;
    std::vector<Break> breaks_;
    std::vector<Break> holds_;
    std::vector<Degraded> degraded_;
    std::vector<network::Rerouting> reroutings_;
    base::Time whole_from_;
};

enum class Shape : std::uint8_t { star, tree, any };

/// Whether each route leads to a cable.
inline bool is_whole(const network::Graph& graph) {
    for (std::size_t i = 0; i < graph.forwarding.size(); ++i) {
        const network::End end{network::NodeIndex(graph.hosts + i / graph.hosts),
                               graph.forwarding[i]};
        if (std::ranges::none_of(graph.cables, [&](const network::Cable& cable) {
                return cable.a == end || cable.b == end;
            })) {
            return false;
        }
    }
    return true;
}

/// A random fabric without faults.
inline infiniband::FabricConfig any_fabric(base::ByteSource& from, Shape shape) {
    using namespace infiniband;
    FabricConfig config;
    const base::BitRate rate = base::gigabits_per_second(from.one_of({10, 25, 100, 200}));
    const base::Time delay = base::nanoseconds(1 + from.number(0, 10'000));
    const auto count = [&](std::int64_t least, std::int64_t most) {
        return static_cast<std::uint32_t>(from.number(least, most));
    };
    if (shape == Shape::any) {
        config = reference::random_fabric(count(0, 65'535)).config;
        if (from.coin() || !is_whole(config)) {
            config.forwarding =
                shortest_ways(config, std::vector(config.cables.size(), false), from.byte());
        }
    } else {
        config = shape == Shape::star
                     ? star(count(2, 6), rate, delay)
                     : fat_tree(count(2, 3), count(1, 3), count(1, 2), rate, delay);
        config.lanes = count(1, 3);
        config.buffer_blocks = count(1, 300);
        config.input_queue = from.one_of({InputQueue::fifo, InputQueue::virtual_output});
        config.credit_release = from.one_of({CreditRelease::per_block, CreditRelease::at_tail});
        config.crossbar_arbiter =
            from.one_of({CrossbarArbiter::round_robin, CrossbarArbiter::islip});
        config.head_of_queue_lifetime = base::microseconds(from.one_of({0, 0, 0, 3, 100}));
    }
    for (std::uint32_t lane = 0; lane < config.lanes; ++lane) {  // every lane gets some service
        config.arbitration.low.push_back({VirtualLane(lane), 64});
    }
    config.service_lanes = {VirtualLane(0), VirtualLane(config.lanes - 1)};
    config.seed = from.byte();
    return config;
}

inline transport::RdmaConfig any_rdma(base::ByteSource& from) {
    transport::RdmaConfig config;
    config.mtu = from.one_of({4096, 1024, 256});
    config.acknowledge = from.byte() % 8 != 0;
    config.retry_timeout = base::microseconds(from.one_of({100, 100, 400, 0}));
    config.retry_count = static_cast<std::uint32_t>(from.one_of({7, 7, 1, 0}));
    return config;
}

/// Spreads packets over all upward links of each leaf of a tree.
inline void spread(network::Graph& graph) {
    for (std::uint32_t i = 0; i < graph.switches(); ++i) {
        const network::NodeIndex node = graph.node_of(network::SwitchIndex(i));
        network::PortGroup up{node, {}};
        for (const network::Cable& cable : graph.cables) {
            if (cable.a.node == node) {
                up.ports.push_back(cable.a.port);
            }
        }
        for (std::uint32_t host = 0; host < graph.hosts && !up.ports.empty(); ++host) {
            network::Route& route = graph.forwarding[std::size_t{i} * graph.hosts + host];
            if (std::ranges::find(up.ports, route) != up.ports.end()) {
                route = static_cast<network::Route>(graph.ports(node) + 1);
            }
        }
        if (!up.ports.empty()) {
            graph.groups.push_back(up);
        }
    }
}

/// A time after which everything that is on a wire now has arrived.
inline base::Time longest_wire(const infiniband::FabricConfig& fabric) {
    base::Time longest;
    for (const network::Cable& cable : fabric.cables) {
        longest = std::max(longest,
                           cable.delay + base::WireClock(cable.rate)(fabric.credit_update_bytes));
    }
    return longest + base::Time{1};
}

/// A random network of up to eight hosts, with faults.
inline AnyNetwork any_network(base::ByteSource& from) {
    AnyNetwork any;
    const std::uint8_t kind = from.byte() % 4;
    const Shape shape = from.one_of({Shape::star, Shape::tree, Shape::any, Shape::any});
    infiniband::FabricConfig fabric = any_fabric(from, shape);
    if (kind > 1) {
        const transport::RdmaConfig rdma = any_rdma(from);
        const std::int64_t largest = (rdma.mtu + 64) / infiniband::kBlockBytes + 1;
        fabric.buffer_blocks = std::max(fabric.buffer_blocks, largest);
        const AnyBreaks breaks(from, fabric, longest_wire(fabric));
        fabric.changes = breaks.changes<infiniband::LinkChange>();
        fabric.reroutings = breaks.reroutings();
        any.whole_from = breaks.whole_from();
        any.network = std::move(fabric);
        any.transport = rdma;
        return any;
    }
    ethernet::NetworkConfig config;
    static_cast<network::Graph&>(config) = fabric;
    config.switches.assign(config.switch_ports.size(), any_small_switch(from));
    config.seed = fabric.seed;
    const AnyBreaks breaks(from, config, longest_wire(fabric));
    if (shape == Shape::tree && from.coin()) {
        spread(config);
    }
    config.changes = breaks.changes<ethernet::LinkChange>();
    config.reroutings = breaks.reroutings();
    any.whole_from = breaks.whole_from();
    if (kind == 0) {
        any.transport = any_tcp(from);
    } else {
        any.transport = any_rdma(from);
    }
    any.network = std::move(config);
    return any;
}

}  // namespace daqloom::systems
