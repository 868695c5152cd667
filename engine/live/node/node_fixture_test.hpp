// For tests: whole nodes of a run in one process, each with its data thread, sources and consumer.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "live/memory/clock.hpp"
#include "live/node/node.hpp"
#include "live/transport/make.hpp"
#include "live/transport/units_test.hpp"

namespace daqloom::live {

inline constexpr base::Time kNodesHung = base::seconds(120);  ///< ends a test that would hang
inline constexpr Token kToken = {std::byte{1}, std::byte{2}};

/// Polls `is_so`. False: it was never true within the time limit.
inline bool until(const std::function<bool()>& is_so) {
    const base::Time deadline = now() + kNodesHung;
    while (!is_so()) {
        if (now() > deadline) {
            return false;
        }
        std::this_thread::yield();
    }
    return true;
}

inline Units first(std::uint32_t count) {
    Units units;
    for (const UnitIndex unit : base::IndexRange<UnitIndex>(count)) {
        units.push_back(unit);
    }
    return units;
}

inline Units without(Units units, const Units& lost) {
    std::erase_if(units, [&](UnitIndex unit) { return std::ranges::count(lost, unit) > 0; });
    return units;
}

/// Configuration of folded units that check every byte.
inline NodeConfig folded(std::uint32_t units, const std::string& transport = "shm") {
    static std::atomic<int> runs = 0;
    NodeConfig config;
    config.run = "node-test-" + std::to_string(::getpid()) + "-" + std::to_string(runs++);
    config.token = kToken;
    config.slots.readouts = config.slots.builders = first(units);
    config.transport = transport;
    config.waiting = Waiting::blocking;
    config.packing = 10;
    config.fragment_bytes = std::vector<base::Bytes>(units, 200);
    config.stream_buffer = base::Bytes{1} << 20;
    config.output_buffer = base::Bytes{1} << 20;
    return config;
}

/// Halts a node like its process does. Returns the next epoch's first MEP if the node has drained.
inline std::optional<std::uint64_t> halt(Node& node, const Units& lost, base::Time timeout) {
    const base::Time begin = now();
    node.close(lost);
    if (const auto next_mep = node.drain(begin + timeout / 2, begin + timeout)) {
        return next_mep;
    }
    node.close({});
    return node.drain(begin + timeout, begin + timeout);
}

/// A counter by name; 0: the node does not have it, as for counters of builder units only.
inline std::uint64_t count_of(const Node& node, const std::string& name) {
    std::uint64_t found = 0;
    node.each_counter([&](const std::string& each, std::uint64_t value) {
        found = each == name ? value : found;
    });
    return found;
}

/// Adapts a configuration so that a user provides the source of unit 1.
inline void has_user_source_at_unit_1(NodeConfig& config) {
    config.source = config.self == UnitIndex(1) ? SourceKind::user : SourceKind::generator;
}

/// Units of a run in this process, which a test controls.
class NodesUnderTest {
  public:
    explicit NodesUnderTest(const NodeConfig& config) : NodesUnderTest(config, all_of(config)) {}
    /// Makes only the nodes of `here`. `adapt` is called with the configuration of each node.
    NodesUnderTest(
        const NodeConfig& config, const Units& here,
        const std::function<void(NodeConfig&)>& adapt = [](NodeConfig&) {})
        : builders_(config.slots.builders.begin(), config.slots.builders.end()) {
        for (const UnitIndex unit : here) {
            NodeConfig its = config;
            its.self = unit;
            adapt(its);
            auto made = Node::make(std::move(its));
            EXPECT_TRUE(made) << made.error().message;
            nodes_[unit] = std::move(*made);
        }
    }

    Node& operator[](UnitIndex unit) { return *nodes_.at(unit); }
    /// Removes a node, like a kill.
    void kill(UnitIndex unit) { nodes_.erase(unit); }

    /// Begins the next epoch. Members that are not in this process have addresses in `elsewhere`.
    void begin(const Units& members, std::vector<Transport::Peer> elsewhere = {}) {
        std::vector<Transport::Peer> peers = std::move(elsewhere);
        for (const UnitIndex unit : here(members)) {
            auto address = nodes_.at(unit)->prepare(epoch_, members);
            ASSERT_TRUE(address) << address.error().message;
            peers.push_back({unit, std::move(*address)});
        }
        ++epoch_;
        if (at_addresses) {
            at_addresses(peers);
        }
        all(here(members), [&](UnitIndex unit) {
            const auto missing = nodes_.at(unit)->connect(peers, kNodesHung);
            EXPECT_TRUE(missing) << missing.error().message;
            EXPECT_EQ(missing.value_or(Units{99}), Units{}) << "at unit " << unit.value();
        });
        for (const UnitIndex unit : here(members)) {
            const auto started = nodes_.at(unit)->start(next_mep);
            ASSERT_TRUE(started) << started.error().message;
        }
    }

    void halt(const Units& members, const Units& lost = {}, base::Time timeout = kNodesHung) {
        std::mutex mutex;
        all(here(members), [&](UnitIndex unit) {
            const auto drained = live::halt(*nodes_.at(unit), lost, timeout);
            EXPECT_TRUE(drained) << "unit " << unit.value();
            const std::lock_guard lock(mutex);
            next_mep = std::max(next_mep, drained.value_or(0));
        });
    }

    /// Plays an epoch until each building member has checked `meps` MEPs; `lost` are then lost.
    void play(const Units& members, const Units& lost = {}, std::uint64_t meps = 20) {
        begin(members);
        Units building;
        std::ranges::copy_if(members, std::back_inserter(building),
                             [&](UnitIndex unit) { return builders_.contains(unit); });
        EXPECT_TRUE(builds(building, meps));
        halt(without(members, lost), lost);
    }

    [[nodiscard]] std::uint64_t count(UnitIndex unit, const std::string& name) {
        return count_of(*nodes_.at(unit), name);
    }
    [[nodiscard]] std::uint64_t sum(const std::string& name) {
        std::uint64_t all = 0;
        for (const auto& [unit, node] : nodes_) {
            all += count(unit, name);
        }
        return all;
    }
    /// Whether each of these units checks `meps` more MEPs within the time limit.
    bool builds(const Units& units, std::uint64_t meps = 20) {
        return counts(units, "meps_checked", meps);
    }
    /// Whether each of these units counts `more` more within the time limit.
    bool counts(const Units& units, const std::string& name, std::uint64_t more) {
        std::map<UnitIndex, std::uint64_t> before;
        for (const UnitIndex unit : units) {
            before[unit] = count(unit, name);
        }
        return until([&] {
            return std::ranges::all_of(
                units, [&](UnitIndex unit) { return count(unit, name) >= before[unit] + more; });
        });
    }
    /// Number of MEPs with a known fate, over all units until now.
    [[nodiscard]] std::uint64_t accounted() {
        return sum("meps_built") + sum("meps_incomplete") + sum("meps_dropped") +
               sum("meps_discarded");
    }
    void expect_nothing_refused() {
        EXPECT_EQ(sum("refused_messages"), 0U);
        EXPECT_EQ(sum("refused_writes"), 0U);
        EXPECT_EQ(sum("unreachable"), 0U);
    }
    void expect_all_checked() {
        EXPECT_EQ(sum("meps_wrong"), 0U);
        EXPECT_EQ(sum("meps_repeated"), 0U);
        EXPECT_EQ(sum("mfps_malformed"), 0U);
        EXPECT_TRUE(until([&] { return sum("meps_checked") == sum("meps_delivered"); }));
    }
    /// Expects that all built MEPs are correct and complete.
    void expect_all_whole() {
        expect_all_checked();
        EXPECT_EQ(sum("mfps_absent"), 0);
    }

    std::uint64_t next_mep = 0;
    std::function<void(std::vector<Transport::Peer>&)> at_addresses;

  private:
    static Units all_of(const NodeConfig& config) {
        std::set<UnitIndex> units;
        for (const auto* slots :
             {&config.slots.readouts, &config.slots.builders, &config.slots.spares}) {
            units.insert(slots->begin(), slots->end());
        }
        units.erase(UnitIndex::none());
        return {units.begin(), units.end()};
    }
    Units here(const Units& members) {
        Units found;
        std::ranges::copy_if(members, std::back_inserter(found),
                             [&](UnitIndex unit) { return nodes_.contains(unit); });
        return found;
    }
    static void all(const Units& units, const std::function<void(UnitIndex)>& action) {
        std::vector<std::jthread> threads;
        for (const UnitIndex unit : units) {
            threads.emplace_back([&action, unit] { action(unit); });
        }
    }

    std::map<UnitIndex, std::unique_ptr<Node>> nodes_;
    std::set<UnitIndex> builders_;
    std::uint32_t epoch_ = 0;
};

/// Tests with the name of a transport as parameter.
class NodesOver : public testing::TestWithParam<std::string> {
  protected:
    /// Runs until each builder unit has built some MEPs, then stops. Builder units wait for space,
    /// because they would otherwise discard MEPs of a delayed consumer.
    static void expect_right(NodeConfig config, const Units& builders) {
        config.when_full = protocol::WhenFull::wait;
        NodesUnderTest run(config);
        const Units members = first(std::ranges::max(config.slots.builders).value() + 1);
        run.begin(members);
        EXPECT_TRUE(run.builds(builders));
        run.halt(members);
        run.expect_all_checked();
        EXPECT_EQ(run.sum("meps_built"), run.accounted()) << "all of them whole";
        EXPECT_EQ(run.accounted(), run.next_mep) << "none is left out";
        run.expect_nothing_refused();
    }
};

/// Transports with which whole nodes are tested.
inline std::vector<std::string> transports() {
    std::vector<std::string> found = {"shm"};
    for (const std::string& name : transport_names()) {
        if (name == "libfabric:tcp;ofi_rxm") {
            found.push_back(name);
        }
    }
    return found;
}

}  // namespace daqloom::live
