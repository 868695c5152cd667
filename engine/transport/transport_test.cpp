// Properties of all transports.
#include "transport/transport.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "infiniband/fabric_by_hand_test.hpp"
#include "transport/ethernet_star_test.hpp"
#include "transport/rdma_over_ethernet.hpp"
#include "transport/rdma_over_infiniband.hpp"
#include "transport/tcp_over_ethernet.hpp"

namespace daqloom::transport {
namespace {

using base::Time;

std::vector<std::unique_ptr<Transport>> of_every_kind() {
    std::vector<std::unique_ptr<Transport>> all;
    all.push_back(*TcpOverEthernet::make(star(2), TcpConfig{}));
    all.push_back(*RdmaOverEthernet::make(star(2), RdmaConfig{}, {}));
    all.push_back(*RdmaOverInfiniband::make(infiniband::star(2), RdmaConfig{}, {}));
    return all;
}

/// Records when the listener's own events are due.
class Diary : public StrictListener {
  public:
    void on_event(const sim::Event& event) override { times.push_back(event.at); }

    std::vector<Time> times;
};

TEST(Transport, EventsDueAtTheEndDoNotHappen) {
    const Time end = base::milliseconds(1);
    const Time pause = base::microseconds(300);
    for (const auto& transport : of_every_kind()) {
        transport->end_at(end);
        for (const Time at : {pause, end - Time{1}, end, end + Time{1}}) {
            transport->events().push({at, Transport::kFirstOtherEvent, 0});
        }
        Diary diary;
        transport->run(pause, diary);  // which only interrupts
        EXPECT_EQ(transport->now(), pause);
        transport->run(end, diary);
        EXPECT_EQ(diary.times, (std::vector<Time>{pause, end - Time{1}}));
        EXPECT_EQ(transport->now(), end);
    }
}

}  // namespace
}  // namespace daqloom::transport
