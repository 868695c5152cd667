// Whole nodes: a unit whose messages and writes no correct unit sends.
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "live/node/node_fixture_test.hpp"
#include "protocol/data/immediate.hpp"
#include "protocol/units/unit_message.hpp"

namespace daqloom::live {
namespace {

/// Unit 1 of 2, which knows the token and is controlled by the test. Unit 0 is a node under test.
class BadUnit : public TransportEvents {
  public:
    explicit BadUnit(const std::string& transport) : name_(transport) {
        auto bell = Doorbell::create();
        EXPECT_TRUE(bell);
        doorbell_.emplace(std::move(*bell));
        memory_ = std::move(*SharedMemory::create("bad-unit", 1 << 20));
        source_ = std::move(*SharedMemory::create("bad-unit", 1 << 20));
    }
    std::vector<std::byte> prepare() {
        auto made = make_transport(name_, {.self = UnitIndex(1),
                                           .units = 2,
                                           .token = kToken,
                                           .epoch = 0,
                                           .arena = &memory_,
                                           .sources = {source_.bytes()},
                                           .doorbell = &*doorbell_,
                                           .waiting = Waiting::blocking});
        EXPECT_TRUE(made) << made.error().message;
        transport_ = std::move(*made);
        return transport_->address();
    }
    void connect(std::span<const Transport::Peer> peers) {
        const auto missing = transport_->connect(peers, now() + kNodesHung);
        EXPECT_TRUE(missing && missing->empty());
    }
    void send(std::span<const std::byte> bytes) {
        EXPECT_TRUE(until([&] {
            transport_->poll(*this);
            return transport_->send(UnitIndex(0), bytes);
        }));
    }
    void send(const protocol::UnitMessage& message) {
        std::vector<std::byte> bytes(protocol::encoded_bytes(message));
        protocol::encode_message(message, bytes);
        send(bytes);
    }
    void write(std::uint32_t immediate) {
        const Write write{.to = UnitIndex(0),
                          .bytes = source_.bytes().first(64),
                          .offset = 0,
                          .immediate = immediate,
                          .context = 0};
        const std::uint64_t before = done_;
        EXPECT_TRUE(until([&] {
            transport_->poll(*this);
            return transport_->write(write);
        }));
        EXPECT_TRUE(until([&] {
            transport_->poll(*this);
            return done_ > before;
        }));
    }
    void poll() { transport_->poll(*this); }

    void on_message(UnitIndex, std::span<const std::byte>) override {}
    void on_written(UnitIndex, std::uint32_t) override {}
    void on_write_done(std::uint64_t) override { ++done_; }
    void on_unreachable(UnitIndex) override { ADD_FAILURE() << "unit 0 is not reachable"; }

  private:
    std::string name_;
    std::optional<Doorbell> doorbell_;
    SharedMemory memory_;
    SharedMemory source_;
    std::unique_ptr<Transport> transport_;
    std::uint64_t done_ = 0;
};

TEST_P(NodesOver, ImpossibleMessagesAreRefusedAndCounted) {
    using Kind = protocol::UnitMessage::Kind;
    const NodeConfig config = folded(2, GetParam());
    NodesUnderTest run(config, {0});
    BadUnit bad(GetParam());
    std::jthread meanwhile;
    run.at_addresses = [&](std::vector<Transport::Peer>& peers) {
        if (peers.size() == 2) {
            meanwhile = std::jthread([&bad, peers] { bad.connect(peers); });
        }
    };
    run.begin({0, 1}, {{UnitIndex(1), bad.prepare()}});
    meanwhile.join();

    std::uint64_t messages = 0;
    const auto send = [&](const protocol::UnitMessage& message) {
        bad.send(message);
        ++messages;
    };
    bad.send(std::vector<std::byte>(5, std::byte{0xff}));
    bad.send(std::vector<std::byte>(16, std::byte{0}));
    bad.send(std::vector<std::byte>(4'000, std::byte{1}));
    messages += 3;
    const std::array<base::Bytes, 1> one = {64};
    for (const Kind kind :
         {Kind::assign, Kind::last_assignment, Kind::done, Kind::request}) {  // of another protocol
        send({kind, 0, 0, one});
    }
    send({Kind::grant, 0, 0, one});          // unit 0's own MEP
    send({Kind::grant, 0, 1'000'001, one});  // not announced
    send({Kind::discard, 0, 1'000'001, {}});
    send({Kind::closing, 0, 1'000'001, {}});
    send({Kind::last_answer, 0, 1'000'001, {}});
    send({Kind::last_announcement, 0, 1, {}});  // nothing is being closed
    send({Kind::announce, 0, 1, one});          // its own MEP
    send({Kind::announce, 0, 2'000'000, one});  // far too early
    send({Kind::announce, 0, 0, {}});           // of no stream
    send({Kind::barrier, 999, 999, {}});
    EXPECT_TRUE(until([&] {
        bad.poll();
        return run.count(UnitIndex(0), "refused_messages") == messages;
    })) << run.count(UnitIndex(0), "refused_messages")
        << " of " << messages;

    const auto immediate = [](std::uint32_t epoch, std::uint32_t slot, std::uint32_t stream) {
        return protocol::Immediate{.epoch = epoch, .slot = slot, .stream = stream}.encode();
    };
    bad.write(immediate(1, 0, 1));       // of another epoch
    bad.write(immediate(0, 0, 2));       // of a stream that nobody has
    bad.write(immediate(0, 0, 65'535));  //
    bad.write(immediate(0, 0, 1));       // not granted
    bad.write(immediate(0, 1'023, 1));   //
    std::uint64_t writes = 5;
    if (GetParam() == "shm") {  // which knows who it was
        bad.write(immediate(0, 0, 0));
        ++writes;
    }
    EXPECT_TRUE(until([&] {
        bad.poll();
        return run.count(UnitIndex(0), "refused_writes") == writes;
    })) << run.count(UnitIndex(0), "refused_writes")
        << " of " << writes;

    run.halt({0}, {1});
    run.play({0});
    run.expect_all_checked();
}

}  // namespace
}  // namespace daqloom::live
