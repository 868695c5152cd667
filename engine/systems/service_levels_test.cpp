// Known answers of service levels: messages on a separate lane do not wait behind other messages.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "infiniband/fabric_by_hand_test.hpp"
#include "systems/fabric_parts_test.hpp"
#include "systems/finished_run_test.hpp"
#include "systems/shift/shift_system.hpp"
#include "transport/rdma/play_test.hpp"

namespace daqloom::systems {
namespace {

using transport::HostsPlay;
using transport::Message;
using transport::MessageIndex;

using base::Time;

constexpr Time kByteAt200Gbps{40};
constexpr base::Bytes kStream = 1'000'000;
constexpr base::Bytes kShort = 32;

/// Four streams to host 12 share a link. Host 0 sends one of the streams, and also a short message
/// to host 12.
struct Crowd {
    explicit Crowd(std::uint8_t lane) : play(make_fabric(), {}) {
        for (std::uint32_t host = 0; host < 4; ++host) {
            post(host, kStream, 0, Time::zero());
        }
        post(0, kShort, lane, base::microseconds(50));
        play.run(*this);
    }

    static FabricConfig make_fabric() {
        FabricConfig fabric = fat_tree(4, 4, 4);
        fabric.lanes = 2;
        fabric.arbitration.high = lane_weights({{1, 64}});
        fabric.arbitration.low = lane_weights({{0, 64}});
        return fabric;
    }
    void post(std::uint32_t from, base::Bytes bytes, std::uint8_t lane, Time after) {
        Message message;
        message.source = NodeIndex(from);
        message.destination = NodeIndex(12);
        message.bytes = bytes;
        message.lane = VirtualLane(lane);
        play.hosts->post(message, after, Time::zero());
    }
    void on_received(MessageIndex index, Time now) {
        if (play.hosts->message(index).bytes == kShort) {
            took = now - base::microseconds(50);
        }
    }
    void on_completed(MessageIndex, Time) {}
    void on_failed(MessageIndex, Time) {}

    HostsPlay play;
    Time took;
};

TEST(ServiceLevels, AShortMessageOnALaneOfItsOwnWaitsForOnePacketAtEachHop) {
    const FabricConfig fabric = Crowd::make_fabric();
    const Time packet = kByteAt200Gbps * (4096 + 26);
    const Time idle = kByteAt200Gbps * (kShort + 26 + 16 + 3 * 64) + fabric.cables[0].delay * 4 +
                      fabric.switch_latency * 3;
    // A separate lane goes first as soon as a wire is free: four wires, with a credit update each.
    const Time alone = Crowd(1).took;
    EXPECT_GE(alone, idle);
    EXPECT_LE(alone, idle + (packet + kByteAt200Gbps * 8) * 4);
    // On the lane of the data, the message is behind the packets of host 0 in the first switch: a
    // buffer of 15 packets less those under way (a credit loop is less than five packets), each of
    // which waits for three others. Messages of a queue pair are sent one after another.
    EXPECT_GE(Crowd(0).took, idle + packet * (4 * 10));
}

TEST(ServiceLevels, DataAndControlHaveTheirLanes) {
    constexpr std::uint32_t kUnits = 4;
    constexpr base::Bytes kMfpBytes = 16 * 4096;
    ShiftSystemConfig config;
    fabric_of(config) = star(kUnits, base::gigabits_per_second(200));
    fabric_of(config).lanes = 3;
    fabric_of(config).arbitration.high = lane_weights({{2, 64}});
    fabric_of(config).arbitration.low = lane_weights({{1, 64}});
    fabric_of(config).service_lanes = virtual_lanes({0, 1, 0, 2});
    config.data_service_level = 1;
    config.control_service_level = 3;
    config.slots = node_indices({0, 1, 2, 3});
    config.mfp_bytes.assign(kUnits, kMfpBytes);
    config.source_acknowledge.mean = base::seconds(1);  // so that there are two rounds
    const auto system = systems::play<ShiftSystem>(config, base::milliseconds(5));
    std::vector<base::Bytes> sent(3, 0);
    for (std::uint32_t host = 0; host < kUnits; ++host) {
        for (const VirtualLane lane : base::IndexRange<VirtualLane>(3)) {
            sent[lane.value()] += network_under(*system).counters(end_at(host, 1), lane).bytes;
        }
    }
    // One of four MFPs stays on its node. Headers: 26 B a packet, 16 B and 4 B a message; an
    // acknowledgement has 30 B.
    const ShiftReport report = system->report();
    const auto written = static_cast<base::Bytes>(report.mfps_written) * (kUnits - 1) / kUnits;
    EXPECT_EQ(written, 2 * kUnits * (kUnits - 1));
    EXPECT_EQ(sent[0], 0);
    EXPECT_EQ(sent[1], written * (kMfpBytes + 16 * 26 + 16 + 4 + 30));
    // Sizes and offsets are 8 B longer than barriers' messages; an announce and a grant each.
    const auto control = static_cast<base::Bytes>(report.control_messages);
    EXPECT_EQ(sent[2], control * (16 + 26 + 16 + 4 + 30) + 2 * written * 8);
    EXPECT_GT(control, 2 * written);
}

TEST(ServiceLevels, OfALaneThatIsNotThereAreRefused) {
    FabricConfig fabric = star(2);
    fabric.service_lanes = virtual_lanes({0, 1});
    sim::EventQueue events;
    EXPECT_EQ(base::message_of(Network::make(fabric, events)),
              "a service level on virtual lane 1; there are 1");
}

}  // namespace
}  // namespace daqloom::systems
