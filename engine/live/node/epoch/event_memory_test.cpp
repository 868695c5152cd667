#include "live/node/epoch/event_memory.hpp"

#include <gtest/gtest.h>

#include "protocol/units/daqpipe_unit.hpp"

namespace daqloom::live {
namespace {

TEST(EventMemory, HasAHeaderAndAPlaceForEachSourceOfAnEvent) {
    const EventMemory memory{.header = 128, .place = 1'024, .readouts = 3, .slots = 2};
    EXPECT_EQ(memory.event_bytes(), 128 + 3 * 1'024);
    EXPECT_EQ(memory.event_at(1), 3'200);
    const protocol::ReadoutIndex last(2);
    EXPECT_EQ(memory.mfp_at(1, last), 3'200 + 128 + 2 * 1'024);
    EXPECT_EQ(memory.slot_at(memory.mfp_at(1, last)), 1);
    EXPECT_EQ(memory.slot_at(memory.event_at(1) - 1), 0);
}

/// Ten fragments of 100 B: 20 B of header, 12 B of types, 20 B of sizes, and up to 3 B of padding
/// per fragment.
NodeConfig ten_fragments() {
    NodeConfig config;
    config.credits = 2;
    config.packing = 10;
    config.fragment_bytes = {40, 100};
    config.fragment_sizes = protocol::FragmentSizes::fixed;
    return config;
}

TEST(EventMemory, HasRoomForTheLargestMfpOfTheLargestStream) {
    const auto memory = EventMemory::of<protocol::DaqpipeUnit>(ten_fragments(), {2, 2, 4});
    ASSERT_TRUE(memory);
    EXPECT_EQ(memory->place, 1'088) << "20 + 12 + 20 + 10 × (100 + 3) = 1082, on cache lines";
    EXPECT_EQ(memory->header, 128) << "40 + 4 × 16 = 104";
}

TEST(EventMemory, NamesTheBufferThatIsTooSmall) {
    NodeConfig config = ten_fragments();
    config.output_buffer = 2 * (128 + 2 * 1'088) - 1;
    auto memory = EventMemory::of<protocol::DaqpipeUnit>(config, {2, 2, 4});
    ASSERT_FALSE(memory);
    EXPECT_EQ(memory.error().message,
              "2 credits for events of up to 2304 bytes take 4608 bytes of the output buffer, "
              "which has 4607; give fewer credits or a larger output buffer");
    config = ten_fragments();
    config.stream_buffer = 1'088 * 2 * 5 - 1;
    memory = EventMemory::of<protocol::DaqpipeUnit>(config, {2, 5, 4});
    ASSERT_FALSE(memory);
    EXPECT_EQ(memory.error().message,
              "5 builder units with 2 credits collect packets of up to 1088 bytes at a time, 10880 "
              "bytes of each stream, whose buffer has 10879; give fewer credits or a larger stream "
              "buffer");
}

}  // namespace
}  // namespace daqloom::live
