// For tests: writes over a fabric, and the fate of each.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <tuple>
#include <vector>

#include "base/expected_test.hpp"
#include "transport/rdma/play_test.hpp"

namespace daqloom::transport {

inline Message write(std::uint32_t from, std::uint32_t to, base::Bytes bytes) {
    Message message;
    message.source = NodeIndex(from);
    message.destination = NodeIndex(to);
    message.bytes = bytes;
    return message;
}

/// Records when each message, in the order of posting, is received, completed or failed.
class Writes {
  public:
    Writes(const FabricConfig& fabric, const HostConfig& hosts) : play(fabric, hosts) {}

    void post(Message message, base::Time at = {}) {
        message.tag = received.size();
        posted_.push_back(at);
        play.hosts->post(message, at, base::Time::zero());
        received.emplace_back();
        completed.emplace_back();
        failed.emplace_back();
    }
    void post(std::uint32_t from, std::uint32_t to, base::Bytes bytes, base::Time at = {}) {
        post(write(from, to, bytes), at);
    }
    void run() {
        play.run(*this);
        EXPECT_EQ(base::message_of(play.network->check_conservation(play.now)), "");
        EXPECT_EQ(base::message_of(play.hosts->check_conservation()), "");
    }

    void on_received(MessageIndex index, base::Time now) {
        const Message& message = play.hosts->message(index);
        received[message.tag].push_back(now);
        order.push_back(message.tag);
        const auto queue_pair =
            std::tuple(message.source, message.destination, message.lane, message.service_level);
        EXPECT_LE(latest_[queue_pair], posted_[message.tag]) << "out of order";
        latest_[queue_pair] = posted_[message.tag];
    }
    void on_completed(MessageIndex index, base::Time now) {
        completed[play.hosts->message(index).tag].push_back(now);
    }
    void on_failed(MessageIndex index, base::Time now) {
        failed[play.hosts->message(index).tag].push_back(now);
    }

    [[nodiscard]] const RetryCounters& retries() const { return play.hosts->retries(); }
    /// Reception of the last message to come.
    [[nodiscard]] base::Time last_received() const { return received[order.back()].back(); }

    HostsPlay play;
    std::vector<std::vector<base::Time>> received;
    std::vector<std::vector<base::Time>> completed;
    std::vector<std::vector<base::Time>> failed;
    std::vector<std::uint64_t> order;  ///< of reception

  private:
    std::vector<base::Time> posted_;
    /// Posting time of the message received last, for each queue pair.
    std::map<std::tuple<NodeIndex, NodeIndex, VirtualLane, ServiceLevel>, base::Time> latest_;
};

}  // namespace daqloom::transport
