// Crossbars matched by iSLIP, with results derived by hand, slot by slot.
#include "infiniband/islip.hpp"

#include "infiniband/network_play_test.hpp"
#include "infiniband/random_fabric_test.hpp"

namespace daqloom::infiniband {
namespace {

using base::Time;
using reference::Injection;

/// Packets for each input and output of a switch.
using Backlog = std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>;

/// A switch whose packets are cells. At first every output is busy with a packet from a separate
/// port, while the inputs, which have faster wires, fill. Then all outputs become free at one
/// instant, and from then on in slots of one cell time.
class Slots {
  public:
    /// Sends one cell of each backlog in turn until all have left, in the order of the reference.
    Slots(std::uint32_t inputs, std::uint32_t outputs, const Backlog& backlog,
          CrossbarArbiter arbiter, std::uint32_t iterations = 1)
        : config_(star(inputs + 2 * outputs)), first_output_(inputs + outputs) {
        for (std::uint32_t input = 0; input < inputs; ++input) {
            config_.cables[input].rate = base::gigabits_per_second(800);
        }
        config_.crossbar_arbiter = arbiter;
        config_.crossbar_iterations = iterations;
        for (std::uint32_t output = 0; output < outputs; ++output) {
            traffic_.push_back({Time::zero(), inputs + output, first_output_ + output, 4096, 0});
        }
        for (std::uint32_t round = 0; round < 64; ++round) {
            for (const auto& [pair, cells] : backlog) {
                if (round < cells) {
                    traffic_.push_back(
                        {base::nanoseconds(50), pair.first, first_output_ + pair.second, kCell, 0});
                }
            }
        }
        const NetworkPlay play(config_, traffic_);
        const reference::Outcome expected = reference::run(config_, traffic_);
        const Time begin = play.deliveries[0].at;  // as cells leave the switch
        for (std::size_t i = outputs; i < traffic_.size(); ++i) {
            EXPECT_EQ(play.deliveries[i].at, expected.packets[i].at) << i;
            const std::int64_t after = (play.deliveries[i].at - begin).ps;
            EXPECT_EQ(after % kSlot.ps, 0);
            left_[{traffic_[i].source, traffic_[i].destination - first_output_}].push_back(
                after / kSlot.ps);
        }
    }

    /// The slots, from 1, in which cells from this input left by this output.
    [[nodiscard]] const std::vector<std::int64_t>& of(std::uint32_t input, std::uint32_t output) {
        return left_[{input, output}];
    }
    /// Cells that have left in a slot.
    [[nodiscard]] std::int64_t size(std::int64_t slot) const {
        std::int64_t cells = 0;
        for (const auto& [pair, slots] : left_) {
            cells += std::count(slots.begin(), slots.end(), slot);
        }
        return cells;
    }
    [[nodiscard]] std::vector<std::int64_t> sizes(std::int64_t slots) const {
        std::vector<std::int64_t> all;
        for (std::int64_t slot = 1; slot <= slots; ++slot) {
            all.push_back(size(slot));
        }
        return all;
    }
    /// The greatest number of slots for which a cell was at the head of its queue.
    [[nodiscard]] std::int64_t longest_wait() const {
        std::int64_t longest = 0;
        for (const auto& [pair, slots] : left_) {
            std::int64_t before = 0;
            for (const std::int64_t slot : slots) {
                longest = std::max(longest, slot - before);
                before = slot;
            }
        }
        return longest;
    }

  private:
    static constexpr base::Bytes kCell = 64;
    static constexpr Time kSlot{kCell * 80};

    FabricConfig config_;
    std::uint32_t first_output_;
    std::vector<Injection> traffic_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::int64_t>> left_;
};

Backlog everywhere(std::uint32_t ports, std::uint32_t cells) {
    Backlog all;
    for (std::uint32_t input = 0; input < ports; ++input) {
        for (std::uint32_t output = 0; output < ports; ++output) {
            all[{input, output}] = cells;
        }
    }
    return all;
}

using Sizes = std::vector<std::int64_t>;

TEST(Islip, PointersThatAgreeAtFirstDifferAfterAsManySlotsAsThereArePorts) {
    // All inputs have cells for all outputs, and all pointers are at port 0. In slot 1 all outputs
    // grant to input 0, which accepts output 0: one cell. Only the pointer of output 0 moves, to
    // input 1. In slot 2 output 0 grants to input 1 and the others to input 0, whose pointer is at
    // output 1: two cells. In slot s, output j grants to input s − 1 − j, or to input 0 if there is
    // no such input yet.
    const Backlog all = everywhere(4, 12);
    const auto sizes = [&](std::uint32_t iterations) {
        return Slots(4, 4, all, CrossbarArbiter::islip, iterations).sizes(6);
    };
    EXPECT_EQ(sizes(1), (Sizes{1, 2, 3, 4, 4, 4}));
    // Each further iteration matches one remaining output with the next input, and moves no
    // pointer.
    EXPECT_EQ(sizes(2), (Sizes{2, 3, 4, 4, 4, 4}));
    EXPECT_EQ(sizes(3), (Sizes{3, 4, 4, 4, 4, 4}));
    EXPECT_EQ(sizes(4), (Sizes{4, 4, 4, 4, 4, 4}));
    // Outputs that choose one after the other exclude the inputs already taken.
    EXPECT_EQ(Slots(4, 4, all, CrossbarArbiter::round_robin).sizes(6), (Sizes{4, 4, 4, 4, 4, 4}));
}

TEST(Islip, PointersThatDifferServeEveryQueueOnceInAsManySlotsAsThereArePorts) {
    Slots slots(4, 4, everywhere(4, 12), CrossbarArbiter::islip);
    for (std::uint32_t input = 0; input < 4; ++input) {
        for (std::uint32_t output = 0; output < 4; ++output) {
            std::vector<std::int64_t> expected;  // s = 1 + input + output, and every fourth
            for (std::int64_t cell = 0; cell < 12; ++cell) {
                expected.push_back(1 + input + output + 4 * cell);
            }
            EXPECT_EQ(slots.of(input, output), expected) << input << " to " << output;
        }
    }
}

TEST(Islip, ServesAQueueThatOutputsInTurnStarve) {
    // Input 0 has cells for outputs 0 and 1, input 1 only for output 1.
    const std::uint32_t cells = 40;
    const Backlog backlog{{{0, 0}, cells}, {{0, 1}, cells}, {{1, 1}, cells}};
    // Round robin: the turn advances by each packet, two per slot, and there are six ports. Output
    // 0 (place 4) thus chooses first in every slot and takes input 0; output 1 then has only input
    // 1. The cells from input 0 for output 1 leave after all others.
    Slots in_turn(2, 2, backlog, CrossbarArbiter::round_robin);
    EXPECT_EQ(in_turn.of(0, 0).back(), cells);
    EXPECT_EQ(in_turn.of(1, 1).back(), cells);
    EXPECT_EQ(in_turn.of(0, 1).front(), cells + 1);
    // iSLIP: in slot 1, both outputs grant to input 0, which accepts output 0. In slot 2 both grant
    // to input 0, as the pointer of output 1 has not moved; input 0 accepts output 1. In slot 3
    // output 0 grants to input 0, output 1 to input 1, and all pointers are as before slot 2. Each
    // queue gets every second slot, the most that all three can have at once.
    Slots matched(2, 2, backlog, CrossbarArbiter::islip);
    for (std::int64_t i = 0; i < 10; ++i) {
        const auto cell = static_cast<std::size_t>(i);
        EXPECT_EQ(matched.of(0, 0)[cell], 1 + 2 * i);
        EXPECT_EQ(matched.of(0, 1)[cell], 2 + 2 * i);
        EXPECT_EQ(matched.of(1, 1)[cell], 3 + 2 * i);
    }
}

Backlog some_backlog(base::RandomStream& random) {
    Backlog some = everywhere(4, 0);
    for (auto& [pair, cells] : some) {
        cells = random.uniform() < 0.5 ? static_cast<std::uint32_t>(random.uniform_int(30)) : 0;
    }
    return some;
}

TEST(Islip, ServesEveryRequestWithinAsManySlotsAsThePortsSquared) {
    // McKeown 1999, property 2: an output serves at most N − 1 other inputs first, and waits at
    // most N slots until each of them accepts.
    base::RandomStream random(1, "backlogs");
    std::int64_t longest = 0;
    for (std::uint32_t draw = 0; draw < 200; ++draw) {
        const Slots slots(4, 4, some_backlog(random), CrossbarArbiter::islip, 1 + draw % 4);
        longest = std::max(longest, slots.longest_wait());
    }
    EXPECT_LT(longest, 16);
    EXPECT_GT(longest, 4);
}

/// Share of the time for which all outputs are busy while each input gets a cell for a random
/// output in every slot.
double saturation(std::uint32_t ports, std::uint32_t cells, std::uint32_t iterations) {
    FabricConfig config = star(2 * ports);  // inputs and outputs
    config.crossbar_arbiter = CrossbarArbiter::islip;
    config.crossbar_iterations = iterations;
    config.buffer_blocks = 2 * cells;  // more than any output gets: none waits for credits
    base::RandomStream random(ports, "destinations");
    std::vector<Injection> traffic;
    for (std::uint32_t i = 0; i < cells; ++i) {
        for (std::uint32_t host = 0; host < ports; ++host) {
            const auto to = static_cast<std::uint32_t>(random.uniform_int(ports));
            traffic.push_back({Time::zero(), host, ports + to, 64, 0});
        }
    }
    const NetworkPlay play(config, traffic);
    const Time slot{64 * 80};
    const Time first = config.cables[0].delay * 2 + config.switch_latency + slot * 2;
    const Time last = first + slot * (cells - 1);
    const auto through =
        std::count_if(play.deliveries.begin(), play.deliveries.end(),
                      [&](const reference::Delivery& one) { return one.at <= last; });
    return static_cast<double>(through) / (static_cast<double>(cells) * ports);
}

TEST(Islip, CarriesAllOfUniformRandomCells) {
    // McKeown 1999, section III: one iteration carries all cells, but first-in first-out inputs
    // saturate at 0.59, random grants and accepts at 1 − 1/e = 0.63. In a finite time cells stay
    // queued; their number grows as the square root of time, so that their share halves in four
    // times the time.
    const double longer = saturation(16, 4'000, 1);
    EXPECT_NEAR((1 - longer) / (1 - saturation(16, 1'000, 1)), 0.5, 0.1);
    EXPECT_GT(longer, 0.9);
    EXPECT_GT(saturation(16, 4'000, 4), longer);
}

TEST(Islip, RemainingPacketsWaitForBuffersInACircle) {
    // An output that a matching has left idle is matched again later.
    std::uint64_t stuck = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        SCOPED_TRACE(seed);
        auto drawn = reference::random_fabric(seed);
        drawn.config.crossbar_arbiter = CrossbarArbiter::islip;
        drawn.config.head_of_queue_lifetime = Time::zero();
        const LaneSet served = LaneArbiter(drawn.config.arbitration).lanes();
        for (Injection& packet : drawn.traffic) {
            packet.lane = holds(served, VirtualLane(packet.lane)) ? packet.lane : 0;
        }
        const NetworkPlay play(drawn.config, drawn.traffic);
        EXPECT_EQ(play.network->in_network() > 0, !play.network->deadlock().empty());
        stuck += play.network->in_network() > 0 ? 1U : 0U;
    }
    EXPECT_GT(stuck, 0U);
    EXPECT_LT(stuck, 100U);
}

}  // namespace
}  // namespace daqloom::infiniband
