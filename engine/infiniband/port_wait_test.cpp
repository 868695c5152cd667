// PortXmitWait: the time for which an output has packets and sends none, with results derived by
// hand.
//
// `wait_credits` counts missing credits, `wait_crossbar` packets whose input is busy with another
// output. A lost arbitration counts for neither, because the output then sends.

#include "infiniband/fabric_by_hand_test.hpp"
#include "infiniband/network_play_test.hpp"

namespace daqloom::infiniband {
namespace {

using base::Time;
using reference::Injection;

// ---- linear shift, its phases begun by the clock

constexpr std::uint32_t kPackets = 20;  ///< of each host and phase
constexpr std::int64_t kByte = 40;      ///< ps, at 200 Gb/s

/// A phase takes the time of its packets, and of a credit update for each packet received.
constexpr Time kPhase{kPackets * (kFull + 8) * kByte};

/// The longest wait of any output in a shift whose phases begin `gap` apart from each other.
Time longest_wait(const FabricConfig& config, Time gap) {
    std::vector<Injection> traffic;
    for (std::uint32_t phase = 1; phase < config.hosts; ++phase) {
        for (std::uint32_t host = 0; host < config.hosts; ++host) {
            const std::uint32_t to = (host + phase) % config.hosts;
            traffic =
                joined(traffic, packets(host, to, kPackets, kFull, 0, (kPhase + gap) * phase));
        }
    }
    const NetworkPlay play(config, traffic);
    EXPECT_EQ(play.network->delivered(), traffic.size());
    Time longest;
    for (std::uint32_t node = 0; node < config.hosts + config.switch_ports.size(); ++node) {
        const PortNumber ports = node < config.hosts ? 1 : config.switch_ports[node - config.hosts];
        for (PortNumber port = 1; port <= ports; ++port) {
            const OutputCounters& counters = play.network->counters(end_at(node, port));
            longest = std::max(longest, counters.wait_credits + counters.wait_crossbar);
        }
    }
    return longest;
}

TEST(PortWait, OfAConflictFreeShiftIsNothingIfTheGapCoversTheSpreadOfThePaths) {
    for (const std::uint32_t down : {4U, 6U}) {
        for (const Time delay : {base::nanoseconds(170), base::nanoseconds(500)}) {
            SCOPED_TRACE(::testing::Message() << down << " hosts a leaf, " << delay.ps << " ps");
            FabricConfig config = fat_tree(down, down, down, base::gigabits_per_second(200), delay);
            // A packet to another leaf passes two more cables and switches than one within a leaf,
            // each with a delay of its head; credit updates may delay it.
            const Time spread =
                (delay + config.switch_latency + Time{64 * kByte}) * 2 + Time{kPackets * 8 * kByte};
            EXPECT_EQ(longest_wait(config, spread).ps, 0);
            const Time without_gap = longest_wait(config, Time::zero());
            EXPECT_GT(without_gap.ps, 0);
            EXPECT_LE(without_gap.ps, spread.ps);
        }
    }
}

TEST(PortWait, IsForCreditsWhereBuffersAreSmallerThanTheLoop) {
    FabricConfig config = fat_tree(6, 6, 6);
    // Loop of credits: cable, switch with the packet's head, tail out of the switch; the update
    // waits at most for the end of a packet, as all wires are full in both directions; cable.
    const Time loop =
        config.cables[0].delay * 2 + config.switch_latency + Time{(64 + 2 * kFull + 8) * kByte};
    const std::int64_t packets = loop.ps / (kFull * kByte) + 1;  // so many bridge it
    const Time gap = base::microseconds(1);
    config.buffer_blocks = 65 * packets;
    EXPECT_EQ(longest_wait(config, gap).ps, 0);
    config.buffer_blocks -= 1;
    // With one packet less, each flow can send only (packets − 1) packets per loop.
    EXPECT_GT(longest_wait(config, gap).ps, 0);
}

// ---- reading the size of a buffer off the counter

/// Host 0 sends to host 2 at full rate; meanwhile host 1 sends a burst to host 2. The output's time
/// for the burst accumulates in the buffer behind host 0's link; when this is full, host 0 must
/// wait. The rates and the loop of a link are known for real switches as well.
struct BufferProbe {
    FabricConfig config = star(3);
    base::Bytes bytes = 64;  ///< of host 0's packets
    std::uint8_t lane = 0;

    [[nodiscard]] Time packet() const { return Time{bytes * 80}; }  ///< 100 Gb/s
    [[nodiscard]] Time loop() const {
        return config.cables[0].delay * 2 + config.switch_latency +
               Time{(std::min<base::Bytes>(bytes, 64) + bytes + config.credit_update_bytes) * 80};
    }

    /// PortXmitWait of host 0 for a burst of `burst` packets.
    [[nodiscard]] Time wait(std::uint32_t burst) const {
        const Time middle = base::microseconds(5);
        const auto own = static_cast<std::uint32_t>(2 * middle.ps / packet().ps) + 3 * burst;
        const NetworkPlay play(config, joined(packets(0, 2, own, bytes, lane),
                                              packets(1, 2, burst, bytes, lane, middle)));
        return play.network->counters(end_at(0, 1)).wait_credits;
    }

    /// Number of packets that fit into the buffer: bursts grow until host 0 must wait. Packet j
    /// starts when the credits of packet j − fitting return: `loop` after that packet's start, plus
    /// the time of the burst on the wire. So
    ///     wait = burst · packet − (fitting · packet − loop).
    [[nodiscard]] double fitting() const {
        std::uint32_t burst = 1;
        Time waited;
        for (; waited == Time::zero(); burst *= 2) {
            waited = wait(burst);
        }
        burst /= 2;
        return static_cast<double>((packet() * burst - waited + loop()).ps) /
               static_cast<double>(packet().ps);
    }
};

TEST(PortWait, CountsThePacketsOfABlockOrOfTheLargestMtuThatABufferHolds) {
    using Blocks = std::vector<std::int64_t>;
    for (const auto& [bytes, sizes] : {std::pair{base::Bytes{64}, Blocks{128, 255, 300, 512, 1024}},
                                       std::pair{kFull, Blocks{325, 389, 390, 1024}}}) {
        for (const std::int64_t blocks : sizes) {
            BufferProbe probe;
            probe.config.buffer_blocks = blocks;
            probe.bytes = bytes;
            EXPECT_DOUBLE_EQ(probe.fitting(), static_cast<double>(blocks / ((bytes + 63) / 64)));
        }
    }
}

TEST(PortWait, EachLaneHasABufferOfItsOwn) {
    BufferProbe probe;
    probe.config.lanes = 2;
    probe.config.arbitration.low = lane_weights({{0, 64}, {1, 64}});
    probe.config.buffer_blocks = 256;
    EXPECT_DOUBLE_EQ(probe.fitting(), 256);
    probe.lane = 1;
    EXPECT_DOUBLE_EQ(probe.fitting(), 256);
}

}  // namespace
}  // namespace daqloom::infiniband
