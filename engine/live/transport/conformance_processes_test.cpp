// Tests of every transport: units in their own processes, which are killed or stopped.
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "live/memory/clock.hpp"
#include "live/transport/conformance_test.hpp"

namespace daqloom::live {
namespace {

/// A child process, forked before this process has any transport, and a socket to it.
class Child {
  public:
    /// The child's end of the socket.
    class Parent {
      public:
        explicit Parent(int fd) : fd_(fd) {}
        void send(std::span<const std::byte> bytes) const {
            if (::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) {
                ::_exit(3);
            }
        }
        [[nodiscard]] std::vector<std::byte> receive() const {
            pollfd watched{fd_, POLLIN, 0};
            std::vector<std::byte> bytes(4096);
            if (::poll(&watched, 1, 60'000) <= 0) {
                return {};
            }
            const auto length = ::recv(fd_, bytes.data(), bytes.size(), 0);
            bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
            return bytes;
        }

        [[nodiscard]] bool has_message() const {
            pollfd watched{fd_, POLLIN, 0};
            return ::poll(&watched, 1, 0) > 0;
        }

      private:
        int fd_;
    };

    explicit Child(const std::function<void(const Parent&)>& body) {
        int ends[2];
        if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
            throw std::runtime_error("no sockets");
        }
        pid_ = ::fork();
        if (pid_ == 0) {
            ::close(ends[0]);
            body(Parent(ends[1]));
            ::_exit(0);
        }
        ::close(ends[1]);
        end_ = OwnedFd(ends[0]);
    }
    ~Child() { kill(); }
    Child(const Child&) = delete;

    [[nodiscard]] Parent end() const { return Parent(end_.get()); }
    void kill() {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
            pid_ = 0;
        }
    }
    void stop() const {
        ::kill(pid_, SIGSTOP);
        int status = 0;
        ::waitpid(pid_, &status, WUNTRACED);
    }
    void go_on() const { ::kill(pid_, SIGCONT); }

  private:
    OwnedFd end_;
    pid_t pid_ = 0;
};

/// In a child: makes a unit, which connects when it has received the addresses of all units.
std::unique_ptr<TestUnit> join_run(const Child::Parent& parent, const TransportUnderTest& transport,
                                   std::uint32_t self, std::uint32_t units,
                                   const TestUnit::Options& options = {}) {
    auto unit = std::make_unique<TestUnit>(transport, self, units, options);
    parent.send(unit->transport().address());
    std::vector<Transport::Peer> peers;
    for (std::uint32_t other = 0; other < units; ++other) {
        auto address = parent.receive();
        if (other != self) {
            peers.push_back({UnitIndex(other), std::move(address)});
        }
    }
    if (!unit->transport().connect(peers, test_deadline()).value().empty()) {
        ::_exit(4);
    }
    return unit;
}

/// In the parent: makes unit 0, which connects to the children as units 1, 2, ….
std::unique_ptr<TestUnit> join_children(const TransportUnderTest& transport,
                                        std::span<Child* const> children,
                                        const TestUnit::Options& options = {}) {
    const auto units = static_cast<std::uint32_t>(children.size() + 1);
    auto unit = std::make_unique<TestUnit>(transport, 0, units, options);
    std::vector<Transport::Peer> peers;
    for (std::uint32_t i = 0; i < children.size(); ++i) {
        peers.push_back({UnitIndex(i + 1), children[i]->end().receive()});
    }
    for (const Child* child : children) {
        child->end().send(unit->transport().address());
        for (const auto& peer : peers) {
            child->end().send(peer.address);
        }
    }
    EXPECT_TRUE(unit->transport().connect(peers, test_deadline()).value().empty());
    return unit;
}

/// Sends every message back, until it is killed.
void echo(TestUnit& unit) {
    unit.at_message = [&](UnitIndex from, std::span<const std::byte> bytes) {
        static_cast<void>(unit.transport().send(from, bytes));
    };
    unit.keeps = false;
    run_until(unit, [] { return false; });
}

TEST_P(TransportConformance, AKilledUnitIsReportedAndTheRestGoesOn) {
    const auto& transport = GetParam();
    if (!transport.ends_together.empty()) {
        GTEST_SKIP() << transport.ends_together;
    }
    Child one([&](const Child::Parent& parent) { echo(*join_run(parent, transport, 1, 3)); });
    Child two([&](const Child::Parent& parent) { echo(*join_run(parent, transport, 2, 3)); });
    Child* children[] = {&one, &two};
    const auto unit = join_children(transport, children);
    const auto deadline = test_deadline();
    const auto echo_of = [&](std::uint32_t number) {
        const UnitIndex from(number);
        const std::size_t before = unit->messages.size();
        while (!unit->transport().send(from, pattern(100, before)) && now() < deadline) {
            unit->poll();
        }
        return run_until(*unit, [&] { return unit->messages.size() == before + 1; }) &&
               unit->messages[before].from == from &&
               has_pattern(unit->messages[before].bytes, before);
    };
    EXPECT_TRUE(echo_of(1));
    EXPECT_TRUE(echo_of(2));
    EXPECT_TRUE(unit->transport().write(
        {.to = UnitIndex(1), .bytes = unit->source(), .offset = 0, .immediate = 1, .context = 1}));
    unit->poll();
    one.kill();

    for (int i = 0; i < 1000; ++i) {
        static_cast<void>(unit->transport().send(UnitIndex(1), pattern(1000, 1)));
        static_cast<void>(
            unit->transport().write({.to = UnitIndex(1), .bytes = unit->source().first(1000)}));
        unit->poll();
    }
    EXPECT_TRUE(echo_of(2));
    while (transport.tells_of_death && unit->unreachable.empty() && now() < deadline) {
        unit->poll();
        unit->transport().wait(now() + base::milliseconds(10));
    }
    EXPECT_TRUE(echo_of(2));
    EXPECT_LE(unit->unreachable.size(), 1U);
    EXPECT_TRUE(!transport.tells_of_death || unit->unreachable == Units{1});
    EXPECT_LT(now(), deadline);
}

TEST_P(TransportConformance, AUnitStoppedInsideACopyDoesNotTouchTheNextEpoch) {
    const auto& transport = GetParam();
    if (!transport.crash_in_write.empty()) {
        GTEST_SKIP() << transport.crash_in_write;
    }
    const TestUnit::Options first{.arena = 8 << 20, .source = 8 << 20, .epoch = 1};
    const TestUnit::Options second{.arena = 8 << 20, .source = 8 << 20, .epoch = 2};
    constexpr std::size_t kHalf = 4 << 20;
    // Child that writes the halves of its source in turn to the same place, again and again. After
    // a stop it continues for some more writes.
    Child stopped([&](const Child::Parent& parent) {
        const auto unit = join_run(parent, transport, 1, 2, first);
        fill_pattern(unit->source().first(kHalf), 1);
        fill_pattern(unit->source().last(kHalf), 3);
        std::uint64_t writes = 0;
        std::uint64_t polls_after = 0;
        bool is_stopping = false;
        while (polls_after < 2'000 && unit->unreachable.empty()) {
            const auto half = unit->source().subspan(writes % 2 * kHalf, kHalf);
            writes += unit->transport().write({.to = UnitIndex(0), .bytes = half}) ? 1 : 0;
            static_cast<void>(unit->transport().send(UnitIndex(0), pattern(10, 1)));
            unit->poll();
            unit->messages.clear();
            unit->done.clear();
            is_stopping = is_stopping || parent.has_message();
            polls_after += is_stopping ? 1 : 0;
        }
        parent.send(parent.receive());
    });
    Child next([&](const Child::Parent& parent) {
        const auto unit = join_run(parent, transport, 1, 2, second);
        fill_pattern(unit->source(), 2);
        while (!unit->transport().write(
            {.to = UnitIndex(0), .bytes = unit->source(), .immediate = 2})) {
            unit->poll();
        }
        echo(*unit);
    });
    const auto deadline = test_deadline();
    Child* first_children[] = {&stopped};
    auto old = join_children(transport, first_children, first);
    const auto is_torn = [&] {
        const auto there = old->arena().first(kHalf);
        return !has_pattern(there, 1) && !has_pattern(there, 3);
    };
    do {
        stopped.go_on();
        for (const std::size_t before = old->written.size();
             old->written.size() < before + 3 && now() < deadline;) {
            old->poll();
        }
        stopped.stop();
        for (int i = 0; i < 1000; ++i) {
            old->poll();  // what was on its way
        }
    } while (!is_torn() && now() < deadline);
    EXPECT_TRUE(is_torn()) << "it was never stopped inside a copy";
    old.reset();

    Child* second_children[] = {&next};
    const auto unit = join_children(transport, second_children, second);
    while (unit->written.empty() && now() < deadline) {
        unit->poll();
    }
    EXPECT_TRUE(has_pattern(unit->arena(), 2));
    stopped.end().send(pattern(1, 0));
    stopped.go_on();
    EXPECT_EQ(stopped.end().receive().size(), 1U) << "it did not go on";

    for (int i = 0; i < 1000; ++i) {
        unit->poll();
    }
    EXPECT_TRUE(has_pattern(unit->arena(), 2));
    ASSERT_EQ(unit->written.size(), 1U);
    EXPECT_EQ(unit->written[0].immediate, 2U);
    EXPECT_TRUE(unit->messages.empty());
    EXPECT_TRUE(unit->unreachable.empty());
}

}  // namespace
}  // namespace daqloom::live
