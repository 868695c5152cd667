#include "live/memory/fan_out.hpp"

#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

#include "base/failure_test.hpp"
#include "base/random.hpp"
#include "live/memory/consumers_fixture_test.hpp"

namespace daqloom::live {
namespace {

constexpr FanOutConfig kExclusive{};
constexpr FanOutConfig kShared{.is_shared = true};

TEST_F(FannedOut, ExclusivePiecesAreDividedEqually) {
    serve(kExclusive);
    std::vector<ConsumerHere> consumers;
    for (int i = 0; i < 3; ++i) {
        consumers.emplace_back(name_);
    }
    write(0, 90);
    std::set<std::uint64_t> tags;
    for (ConsumerHere& consumer : consumers) {
        for (int i = 0; i < 30; ++i) {  // nothing is acknowledged before all are given
            const auto piece = take(consumer.reader);
            ASSERT_TRUE(piece);
            tags.insert(piece->tag);
        }
        EXPECT_FALSE(consumer.reader.has_next());
    }
    EXPECT_EQ(tags.size(), 90U);
    EXPECT_EQ(writer_->acknowledged(), 0U);
    for (ConsumerHere& consumer : consumers) {
        while (consumer.reader.acknowledge()) {
        }
    }
    EXPECT_TRUE(is_acknowledged_to(90));
    for (const std::size_t slot : {0, 1, 2}) {
        EXPECT_EQ(counters_.acknowledged[slot], 30U);
    }
}

TEST_F(FannedOut, AConsumerThatIsQuickGetsMore) {
    serve(kExclusive);
    ConsumerHere slow(name_);
    ConsumerHere quick(name_);
    for (std::uint64_t tag = 0; tag < 50; ++tag) {
        write(tag, tag + 1);
        if (tag == 0) {
            ASSERT_TRUE(takes(slow, 0));  // the first of equals gets it, and keeps it
        } else {
            ASSERT_TRUE(takes(quick, tag));
            ASSERT_TRUE(quick.reader.acknowledge());
            ASSERT_TRUE(comes_true([&] { return counters_.acknowledged[1] == tag; }));
        }
    }
    EXPECT_EQ(writer_->acknowledged(), 0U) << "in order: piece 0 is not done";
    slow.reader.acknowledge();
    EXPECT_TRUE(is_acknowledged_to(50));
}

TEST_F(FannedOut, SharedPiecesGoToAllAndAreDoneWithTheSlowest) {
    serve(kShared);
    ConsumerHere one(name_);
    ConsumerHere other(name_);
    write(0, 10);
    for (std::uint64_t tag = 0; tag < 10; ++tag) {
        ASSERT_TRUE(takes(one, tag));
        ASSERT_TRUE(takes(other, tag));
    }
    while (one.reader.acknowledge()) {
    }
    ASSERT_TRUE(comes_true([&] { return counters_.acknowledged[0] == 10; }));
    EXPECT_EQ(writer_->acknowledged(), 0U);
    for (int i = 0; i < 4; ++i) {
        other.reader.acknowledge();
    }
    EXPECT_TRUE(is_acknowledged_to(4));
}

TEST_F(FannedOut, PiecesWaitForTheFirstConsumerAndALateOneGetsTheNext) {
    serve(kShared);
    write(0, 5);
    ConsumerHere early(name_);
    for (std::uint64_t tag = 0; tag < 5; ++tag) {
        ASSERT_TRUE(takes(early, tag));
    }
    ConsumerHere late(name_);
    write(5, 7);
    ASSERT_TRUE(takes(late, 5));
    ASSERT_TRUE(takes(late, 6));
    while (late.reader.acknowledge() || early.reader.acknowledge()) {
    }
    ASSERT_TRUE(takes(early, 5));
}

TEST_F(FannedOut, AConsumerThatDetachesHandsItsPiecesToTheOthers) {
    serve(kExclusive);
    auto leaving = std::make_unique<ConsumerHere>(name_);
    write(0, 6);
    ASSERT_TRUE(takes(*leaving, 0));
    ASSERT_TRUE(takes(*leaving, 1));
    ASSERT_TRUE(leaving->reader.acknowledge());
    leaving.reset();
    ConsumerHere next(name_);
    for (std::uint64_t tag = 1; tag < 6; ++tag) {
        ASSERT_TRUE(takes(next, tag));
        ASSERT_TRUE(next.reader.acknowledge());
    }
    EXPECT_TRUE(is_acknowledged_to(6));
    EXPECT_EQ(returned(), 5U);
    EXPECT_EQ(counters_.revoked, 0U);
}

TEST_F(FannedOut, ConsumersKilledInTheMidstOfAPieceDelayNoOthers) {
    for (const FanOutConfig& config : {kExclusive, kShared}) {
        std::vector<Child> children;
        for (int i = 0; i < 4; ++i) {
            children.emplace_back([&](const Child& parent) {
                ConsumerHere consumer(name_);
                parent.say('a');
                if (take(consumer.reader)) {
                    parent.say('p');
                    ::pause();
                }
            });
        }
        serve(config);
        const std::uint64_t given = 40;
        for (std::uint64_t round = 0; round < children.size(); ++round) {
            children[round].say('g');
            ASSERT_EQ(children[round].received(), 'a');
            write(round * given, (round + 1) * given);
            ASSERT_EQ(children[round].received(), 'p');
            children[round].kill();
        }
        ConsumerHere survivor(name_);
        for (std::uint64_t tag = 0; tag < children.size() * given; ++tag) {
            ASSERT_TRUE(takes(survivor, tag));
            ASSERT_TRUE(survivor.reader.acknowledge());
        }
        EXPECT_TRUE(is_acknowledged_to(children.size() * given));
        EXPECT_GE(returned(), children.size() * given) << "of the killed, again for each";
        TearDown();
    }
}

TEST_F(FannedOut, AStoppedConsumerLosesItsPiecesAndCannotAcknowledgeThem) {
    Child stopped([&](const Child& parent) {
        ConsumerHere consumer(name_);
        parent.say('a');
        const auto piece = take(consumer.reader);
        parent.say(piece ? 'p' : '-');
        if (parent.received() == 'c') {
            const bool is_taken = !consumer.reader.acknowledge() && consumer.reader.is_revoked() &&
                                  consumer.reader.is_at_end() && !consumer.reader.next();
            parent.say(is_taken ? 'r' : '-');
        }
    });
    serve({.is_shared = false, .patience = base::seconds(2)});
    stopped.say('g');
    ASSERT_EQ(stopped.received(), 'a');
    write(0, 3);
    ASSERT_EQ(stopped.received(), 'p');
    stopped.send(SIGSTOP);
    ConsumerHere other(name_);
    for (std::uint64_t tag = 0; tag < 3; ++tag) {
        ASSERT_TRUE(takes(other, tag));
        ASSERT_TRUE(other.reader.acknowledge());
    }
    EXPECT_TRUE(is_acknowledged_to(3));
    EXPECT_EQ(counters_.revoked, 1U);
    stopped.send(SIGCONT);
    stopped.say('c');
    EXPECT_EQ(stopped.received(), 'r');
}

TEST_F(FannedOut, ImpossibleCountsOfAConsumerEndItsSideAlone) {
    serve(kExclusive);
    ConsumerHere other(name_);
    std::uint64_t revoked = 0;
    for (const std::uint64_t count :
         {std::uint64_t{1000}, ~std::uint64_t{0}, std::uint64_t{1} << 62}) {
        ConsumerHere attacker(name_);
        const HostileControl its(attacker.unit.buffer());
        write(revoked, revoked + 1);
        ASSERT_TRUE(
            comes_true([&] { return other.reader.has_next() || attacker.reader.has_next(); }));
        its.acknowledged() = count;
        attacker.unit.buffer().writer_bell().ring();
        ASSERT_TRUE(comes_true([&] { return counters_.revoked == revoked + 1; }));
        ++revoked;
    }
    for (std::uint64_t tag = 0; tag < revoked; ++tag) {
        ASSERT_TRUE(takes(other, tag));
        ASSERT_TRUE(other.reader.acknowledge());
    }
    EXPECT_TRUE(is_acknowledged_to(revoked));
    EXPECT_FALSE(other.reader.is_revoked());
}

TEST_F(FannedOut, TheNumberOfConsumersIsLimited) {
    serve(kExclusive);
    std::vector<ConsumerHere> consumers;
    for (std::size_t i = 0; i < FanOutCounters::slots; ++i) {
        consumers.emplace_back(name_);
    }
    EXPECT_TRUE(base::fails_with("16 processes have this side of the buffer",
                                 attach_reader(name_, now() + kHung)));
    consumers.pop_back();
    EXPECT_TRUE(attach_reader(name_, now() + kHung));
    EXPECT_EQ(counters_.attached, FanOutCounters::slots + 1);
}

TEST_F(FannedOut, RefusesProcessesOfOtherUsers) {
    if (::geteuid() != 0) {
        return;  // cannot become another user
    }
    Child stranger([&](const Child& parent) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::ranges::copy(name_, address.sun_path + 1);
        const OwnedFd socket(::socket(AF_UNIX, SOCK_SEQPACKET, 0));
        const auto length =
            static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name_.size());
        const auto hello = BufferHello::encode(BufferSide::reader);
        char answer = 0;
        const bool is_refused =
            ::setresuid(65'534, 65'534, 65'534) == 0 &&
            ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0 &&
            (::send(socket.get(), hello.data(), hello.size(), MSG_NOSIGNAL) < 0 ||
             ::recv(socket.get(), &answer, 1, 0) <= 0);
        parent.say(is_refused ? 'r' : '-');
    });
    serve(kExclusive);
    stranger.say('g');
    EXPECT_EQ(stranger.received(), 'r');
    EXPECT_EQ(counters_.attached, 0U);
}

TEST_F(FannedOut, PassesEverythingBeforeItsEnd) {
    serve(kExclusive);
    ConsumerHere one(name_);
    ConsumerHere other(name_);
    write(0, 100);
    writer_->close();
    fan_out_->finish();
    server_.reset();
    fan_out_.reset();
    std::size_t taken = 0;
    for (ConsumerHere* consumer : {&one, &other}) {
        for (; take(consumer->reader); ++taken) {
            EXPECT_TRUE(consumer->reader.acknowledge());
        }
        EXPECT_TRUE(consumer->reader.is_at_end());
        EXPECT_FALSE(consumer->reader.is_revoked());
    }
    EXPECT_EQ(taken, 100U);
}

/// Random consumers attach, read, acknowledge and detach. Each exclusive piece is acknowledged
/// once, and each shared one at least once.
TEST_F(FannedOut, ByChance) {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
        base::RandomStream random(seed, "fan out by chance");
        const bool is_shared = seed % 2 == 1;
        serve({.is_shared = is_shared, .patience = base::Time::zero()});
        std::map<std::uint64_t, int> acknowledged;
        std::array<std::unique_ptr<ConsumerHere>, 4> consumers;
        std::array<std::deque<std::uint64_t>, 4> read;
        const auto acknowledge = [&](std::size_t i) {
            if (!read[i].empty() && consumers[i]->reader.acknowledge()) {
                ++acknowledged[read[i].front()];
                read[i].pop_front();
            }
        };
        std::uint64_t written = 0;
        for (int turn = 0; turn < 2000; ++turn) {
            const std::size_t i = random.uniform_int(consumers.size());
            switch (consumers[i] ? random.uniform_int(8) : 0) {
                case 0:
                    if (!consumers[i] && random.uniform_int(4) == 0) {
                        consumers[i] = std::make_unique<ConsumerHere>(name_);
                    } else if (consumers[i] && random.uniform_int(8) == 0) {
                        consumers[i].reset();
                        read[i].clear();
                    }
                    break;
                case 1:
                case 2:
                case 3:
                    if (const auto piece = consumers[i]->reader.next()) {
                        read[i].push_back(piece->tag);
                    }
                    break;
                default:
                    acknowledge(i);
            }
            if (written - writer_->acknowledged() < 500) {
                write(written, written + 1);
                ++written;
            }
        }
        for (std::size_t i = 1; i < consumers.size(); ++i) {
            consumers[i].reset();
        }
        consumers[0] =
            consumers[0] ? std::move(consumers[0]) : std::make_unique<ConsumerHere>(name_);
        ASSERT_TRUE(comes_true([&] {
            if (const auto piece = consumers[0]->reader.next()) {
                read[0].push_back(piece->tag);
            }
            acknowledge(0);
            return writer_->acknowledged() == written;
        }));
        EXPECT_EQ(acknowledged.size(), written);
        for (const auto& [tag, times] : acknowledged) {
            EXPECT_TRUE(is_shared ? times >= 1 : times == 1) << tag << ": " << times;
        }
        consumers[0].reset();
        TearDown();
    }
}

}  // namespace
}  // namespace daqloom::live
