// Small random fabrics with traffic, to compare two simulators of the same rules.
#pragma once

#include <algorithm>
#include <span>

#include "base/random.hpp"
#include "infiniband/fabric_by_hand_test.hpp"
#include "infiniband/flit_reference_test.hpp"

namespace daqloom::infiniband::reference {

struct RandomFabric {
    FabricConfig config;
    std::vector<Injection> traffic;
};

namespace detail {

/// Draws a fabric piece by piece. Routes contain no loops, so that every run ends; but buffers may
/// wait for one another in a circle.
class RandomFabricBuilder {
  public:
    explicit RandomFabricBuilder(std::uint64_t seed) : random_(seed, "random fabric") {}

    RandomFabric build() {
        shape_ = one_of({Shape::mesh, Shape::mesh, Shape::mesh, Shape::ring});
        switches_ = shape_ == Shape::ring ? between(3, 4) : between(1, 4);
        config_.hosts = between(2, 8);
        draw_cables();
        draw_routes();
        draw_lanes();
        draw_traffic();
        draw_parameters();
        return {config_, traffic_};
    }

  private:
    enum class Shape { mesh, ring };
    using Reached = base::Table<infiniband::NodeIndex, bool>;

    bool chance(double probability) { return random_.uniform() < probability; }
    std::uint32_t between(std::uint32_t least, std::uint32_t most) {
        return least + static_cast<std::uint32_t>(random_.uniform_int(most - least + 1));
    }
    template <typename T>
    T one_of(std::span<const T> values) {
        return values[random_.uniform_int(values.size())];
    }
    template <typename T>
    T one_of(std::initializer_list<T> values) {
        return one_of(std::span(values.begin(), values.size()));
    }

    // Cables: all switches are connected, and every host is connected to one of them.

    void draw_cables() {
        config_.switch_ports.assign(switches_, 0);
        same_ = cable({}, {});
        all_the_same_ = chance(0.4);
        for (std::uint32_t s = 1; s < switches_; ++s) {
            connect(switch_end(shape_ == Shape::ring ? s - 1 : between(0, s - 1)), switch_end(s));
        }
        if (shape_ == Shape::ring) {
            connect(switch_end(switches_ - 1), switch_end(0));
        } else if (switches_ > 1) {
            for (std::uint32_t more = between(0, 3); more > 0; --more) {
                const std::uint32_t s = between(1, switches_ - 1);
                connect(switch_end(between(0, s - 1)), switch_end(s));
            }
        }
        for (NodeIndex host = 0; host < config_.hosts; ++host) {
            connect(end_at(host, 1), switch_end(between(0, switches_ - 1)));
        }
    }

    /// The next free port, sometimes the one after the next.
    End switch_end(std::uint32_t s) {
        PortNumber& ports = config_.switch_ports[s];
        ports = static_cast<PortNumber>(ports + (chance(0.1) ? 2 : 1));
        return end_at(config_.hosts + s, ports);
    }

    void connect(End a, End b) {
        Cable drawn = all_the_same_ ? same_ : cable(a, b);
        drawn.a = a;
        drawn.b = b;
        config_.cables.push_back(drawn);
    }

    Cable cable(End a, End b) {
        // At the third rate, a byte does not take a whole number of picoseconds.
        const std::int64_t bps = one_of({25'000'000'000, 50'000'000'000, 54'545'454'545,
                                         100'000'000'000, 200'000'000'000, 400'000'000'000});
        return {a, b, {bps}, {one_of<std::int64_t>({1, 5'000, between(1'000, 500'000)})}};
    }

    // Routes: for every destination, a tree of cables that leads to it.

    void draw_routes() {
        config_.forwarding.assign(std::size_t{switches_} * config_.hosts, 0);
        const bool shortest = shape_ == Shape::mesh && chance(0.7);
        for (NodeIndex host = 0; host < config_.hosts; ++host) {
            draw_tree(host, shortest);
        }
        if (chance(0.1)) {  // a route that is missing, or leads to a port without cable
            const std::uint64_t lost = random_.uniform_int(config_.forwarding.size());
            config_.forwarding[lost] =
                chance(0.5) ? PortNumber{0} : ++config_.switch_ports[lost / config_.hosts];
        }
    }

    /// Grows the tree from the host: in rounds over all cables if paths are the shortest ones, by
    /// single random cables if paths are arbitrary, and in one direction only in a ring.
    void draw_tree(NodeIndex host, bool shortest) {
        Reached reached(config_.hosts + switches_);
        reached[infiniband::NodeIndex(host)] = true;
        for (bool grown = true; grown;) {
            std::vector<End> ends = ends_towards(reached);
            if (!shortest && ends.size() > 1) {
                std::swap(ends.front(), ends[random_.uniform_int(ends.size())]);
                ends.resize(1);
            }
            std::shuffle(ends.begin(), ends.end(), random_);
            for (const End end : ends) {
                config_.forwarding[std::size_t{end.node.value() - config_.hosts} * config_.hosts +
                                   host] = end.port;
                reached[end.node] = true;
            }
            grown = !ends.empty();
        }
    }

    [[nodiscard]] bool is_switch(End end) const { return end.node.value() >= config_.hosts; }

    /// Ports of switches without a route, whose cables lead to nodes that already have one.
    [[nodiscard]] std::vector<End> ends_towards(const Reached& reached) const {
        std::vector<End> ends;
        for (std::size_t index = 0; index < config_.cables.size(); ++index) {
            const Cable& cable = config_.cables[index];
            const bool one_way = shape_ == Shape::ring && index < switches_;
            if (is_switch(cable.a) && !reached[cable.a.node] && reached[cable.b.node]) {
                ends.push_back(cable.a);
            }
            if (!one_way && is_switch(cable.b) && !reached[cable.b.node] && reached[cable.a.node]) {
                ends.push_back(cable.b);
            }
        }
        return ends;
    }

    // Virtual lanes: each lane is in one table or in both, rarely in none.

    void draw_lanes() {
        config_.lanes = between(1, 3);
        LaneArbitration& tables = config_.arbitration;
        tables.low.clear();
        for (std::uint32_t entry = between(0, 4); entry > 0; --entry) {
            (chance(0.5) ? tables.high : tables.low).push_back(lane_weight());
        }
        for (VirtualLane lane = 0; lane < config_.lanes; ++lane) {
            if (lane == 0 || !chance(0.02)) {  // one at least is served
                (chance(0.4) ? tables.high : tables.low)
                    .push_back({infiniband::VirtualLane(lane),
                                one_of<std::uint8_t>({1, 16, 64, 100, 255})});
            }
        }
        tables.high_limit = one_of<std::uint8_t>({0, 1, 2, 10, 255});
    }

    LaneWeight lane_weight() {
        return {infiniband::VirtualLane(between(0, config_.lanes - 1)),
                one_of<std::uint8_t>({0, 1, 3, 64, 200})};
    }

    // Traffic: packets of equal or random size, sent over a time span or all together.

    void draw_traffic() {
        const std::uint32_t packets = between(1, one_of<std::uint32_t>({5, 40, 150, 300}));
        const auto largest = one_of<std::uint32_t>({1, 64, 65, 282, 1'050, 4'122});
        const bool same_size = chance(0.3);
        const std::uint32_t while_ns = one_of<std::uint32_t>({0, 1'000, 5'000, 20'000});
        const std::uint32_t bursts = chance(0.5) ? between(1, 4) : 0;
        const bool one_destination = chance(0.2);
        for (std::uint32_t packet = 0; packet < packets; ++packet) {
            const base::Time at = bursts > 0 ? base::nanoseconds(while_ns) * between(0, bursts - 1)
                                             : base::Time{between(0, while_ns * 1'000)};
            const NodeIndex source = between(0, config_.hosts - 1);
            const NodeIndex other = (source + between(1, config_.hosts - 1)) % config_.hosts;
            traffic_.push_back({.at = at,
                                .source = source,
                                .destination = one_destination && source != 0 ? 0 : other,
                                .bytes = same_size ? largest : between(1, largest),
                                .lane = static_cast<VirtualLane>(between(0, config_.lanes - 1))});
        }
    }

    void draw_parameters() {
        base::Bytes largest = 0;
        for (const Injection& packet : traffic_) {
            largest = std::max(largest, packet.bytes);
        }
        const std::int64_t least = (largest + kBlockBytes - 1) / kBlockBytes;
        config_.buffer_blocks =
            one_of<std::int64_t>({least, least + between(0, 3), 2 * least, 5 * least, 1024});
        config_.input_queue = one_of({InputQueue::fifo, InputQueue::virtual_output});
        config_.credit_release = one_of({CreditRelease::per_block, CreditRelease::at_tail});
        config_.crossbar_speedup = between(1, 2);
        config_.switch_latency =
            one_of({base::Time{1}, base::nanoseconds(130), base::Time{between(1'000, 300'000)}});
        config_.credit_update_interval =
            one_of({base::Time::zero(), base::nanoseconds(50), base::Time{between(1, 3'000'000)}});
        config_.credit_update_bytes = one_of<base::Bytes>({1, 8, 8, between(1, 64)});
        config_.head_of_queue_lifetime =
            one_of({base::Time::zero(), base::Time::zero(), base::Time{1},
                    base::Time{between(1, 300'000)}, base::Time{between(1, 5'000'000)}});
        config_.crossbar_arbiter = one_of({CrossbarArbiter::round_robin, CrossbarArbiter::islip});
        config_.crossbar_iterations = between(1, 4);
    }

    base::RandomStream random_;
    Shape shape_ = Shape::mesh;
    std::uint32_t switches_ = 1;
    bool all_the_same_ = false;
    Cable same_;
    FabricConfig config_;
    std::vector<Injection> traffic_;
};

}  // namespace detail

/// A fabric of one to four switches (a mesh, or a ring with routes in one direction) and two to
/// eight hosts, with one to 300 packets of at most 4122 bytes. Equal seeds give equal fabrics.
inline RandomFabric random_fabric(std::uint64_t seed) {
    return detail::RandomFabricBuilder(seed).build();
}

}  // namespace daqloom::infiniband::reference
