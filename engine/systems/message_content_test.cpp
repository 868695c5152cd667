#include "systems/message_content.hpp"

#include <gtest/gtest.h>

#include "hosts/nodes.hpp"

namespace daqloom::systems {
namespace {

using protocol::UnitMessage;

TEST(MessageContent, IsAsLongAsBetweenProcessesByDefault) {
    const std::array<base::Bytes, 3> sizes = {1, 2, 3};
    for (std::size_t count = 0; count <= sizes.size(); ++count) {
        const UnitMessage message{UnitMessage::Kind::announce, 0, 7, std::span(sizes).first(count)};
        EXPECT_EQ(message_bytes(hosts::NodesConfig{}.control_bytes, message),
                  static_cast<base::Bytes>(encoded_bytes(message)));
        EXPECT_EQ(message_bytes(64, message), static_cast<base::Bytes>(64 + 8 * count));
    }
}

}  // namespace
}  // namespace daqloom::systems
