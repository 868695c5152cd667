// Whole nodes of a run in one process, for tests: each with its data thread, sources and consumer.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "live/clock.hpp"
#include "live/node.hpp"

namespace daqloom::live {

/// Folded, one for each slot: unit n is in slot n.
class NodesUnderTest {
  public:
    /// `adapt`: called with the configuration of each.
    NodesUnderTest(
        std::uint32_t units, NodeConfig config,
        const std::function<void(NodeConfig&)>& adapt = [](NodeConfig&) {}) {
        config.readout_in_slot.clear();
        config.fragment_bytes.resize(std::size_t{units} * config.streams,
                                     config.fragment_bytes.front());
        for (UnitIndex unit = 0; unit < units; ++unit) {
            config.readout_in_slot.push_back(unit);
        }
        config.builder_in_slot = config.readout_in_slot;
        for (config.self = 0; config.self < units; ++config.self) {
            NodeConfig own = config;
            adapt(own);
            auto made = Node::make(std::move(own));
            EXPECT_TRUE(made) << made.error().message;
            nodes_.push_back(made ? std::move(*made) : nullptr);
        }
    }

    Node& operator[](UnitIndex unit) { return *nodes_[unit]; }
    /// As if it were killed.
    void kill(UnitIndex unit) { nodes_[unit].reset(); }

    /// Prepares, connects and starts these.
    void begin(std::uint32_t epoch, const std::vector<UnitIndex>& members,
               std::uint64_t first_mep) {
        std::vector<Transport::Peer> peers;
        for (const UnitIndex unit : members) {
            auto address = nodes_[unit]->prepare(epoch, members);
            ASSERT_TRUE(address) << address.error().message;
            peers.push_back({unit, std::move(*address)});
        }
        each_at_once(members, [&](UnitIndex unit) {
            const auto silent = nodes_[unit]->connect(peers, kLongest);
            EXPECT_TRUE(silent && silent->empty());
        });
        for (const UnitIndex unit : members) {
            const auto started = nodes_[unit]->start(first_mep);
            ASSERT_TRUE(started) << started.error().message;
        }
    }

    /// Until the members drain; the first MEP of the next epoch.
    std::uint64_t halt(const std::vector<UnitIndex>& members, const std::vector<UnitIndex>& lost) {
        std::vector<Node::Halted> halted(nodes_.size());
        each_at_once(members,
                     [&](UnitIndex unit) { halted[unit] = nodes_[unit]->halt(lost, kLongest); });
        std::uint64_t next = 0;
        for (const UnitIndex unit : members) {
            EXPECT_TRUE(halted[unit].is_drained) << "unit " << unit;
            next = std::max(next, halted[unit].next_mep);
        }
        return next;
    }

    /// Of one unit; 0 where it has no such counter.
    std::uint64_t count(UnitIndex unit, const std::string& name) {
        std::uint64_t found = 0;
        nodes_[unit]->each_counter([&](const std::string& each, std::uint64_t value) {
            found = each == name ? value : found;
        });
        return found;
    }
    std::uint64_t sum(const std::vector<UnitIndex>& members, const std::string& name) {
        std::uint64_t all = 0;
        for (const UnitIndex unit : members) {
            all += count(unit, name);
        }
        return all;
    }
    /// False: each of them never counted so many.
    bool until_each(const std::vector<UnitIndex>& members, const std::string& name,
                    std::uint64_t many) {
        const base::Time deadline = now() + kLongest;
        for (const UnitIndex unit : members) {
            while (count(unit, name) < many) {
                if (now() > deadline) {
                    return false;
                }
                std::this_thread::yield();
            }
        }
        return true;
    }

  private:
    static constexpr base::Time kLongest = base::seconds(30);

    template <class Do>
    static void each_at_once(const std::vector<UnitIndex>& members, Do act) {
        std::vector<std::jthread> threads;
        for (const UnitIndex unit : members) {
            threads.emplace_back([act, unit] { act(unit); });
        }
    }

    std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace daqloom::live
