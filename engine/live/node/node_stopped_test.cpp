// Whole nodes: a unit that is stopped (SIGSTOP) and continues after its epoch has ended.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live/node/node_fixture_test.hpp"

namespace daqloom::live {
namespace {

/// Unit 2 of 3 in its own process.
class StoppedUnit : public testing::TestWithParam<std::string> {
  protected:
    static NodeConfig config(const std::string& transport) {
        NodeConfig made = folded(3, transport);
        made.packing = 100;
        made.fragment_bytes = {20, 20, 10'000};  // unit 2 copies most of the time
        made.stream_buffer = base::Bytes{16} << 20;
        made.output_buffer = base::Bytes{8} << 20;
        return made;
    }

    struct Pipe {
        Pipe() { EXPECT_EQ(::pipe(ends.data()), 0); }
        std::array<int, 2> ends{};

        void put(std::span<const std::byte> bytes) const {
            const std::uint64_t length = bytes.size();
            ASSERT_EQ(::write(ends[1], &length, sizeof length),
                      static_cast<ssize_t>(sizeof length));
            ASSERT_EQ(::write(ends[1], bytes.data(), bytes.size()),
                      static_cast<ssize_t>(bytes.size()));
        }
        [[nodiscard]] std::vector<std::byte> get() const {
            std::uint64_t length = 0;
            if (::read(ends[0], &length, sizeof length) != static_cast<ssize_t>(sizeof length)) {
                return {};
            }
            std::vector<std::byte> bytes(length);
            for (std::size_t at = 0; at < length;) {
                const ssize_t got = ::read(ends[0], bytes.data() + at, length - at);
                if (got <= 0) {
                    return {};
                }
                at += static_cast<std::size_t>(got);
            }
            return bytes;
        }
    };

    /// Plays epoch 0 with all three units. Then answers each received byte with the number of MFPs
    /// that unit 2 has written.
    static void be_unit_2(NodeConfig config, const Pipe& in, const Pipe& out) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        config.self = UnitIndex(2);
        auto node = Node::make(std::move(config));
        const auto address = node ? (*node)->prepare(0, first(3)) : std::vector<std::byte>{};
        if (!address) {
            return;
        }
        out.put(*address);
        std::vector<Transport::Peer> peers;
        for (const UnitIndex unit : first(3)) {
            peers.push_back({unit, in.get()});
        }
        if (!(*node)->connect(peers, kNodesHung) || !(*node)->start(0)) {
            return;
        }
        while (!in.get().empty()) {
            const std::uint64_t written = count_of(**node, "mfps_written");
            out.put(std::as_bytes(std::span(&written, 1)));
        }
    }
};

INSTANTIATE_TEST_SUITE_P(Transports, StoppedUnit, testing::ValuesIn(transports()),
                         [](const auto& name) {
                             return name.param == "shm" ? std::string("Shm") : std::string("Tcp");
                         });

TEST_P(StoppedUnit, DamagesNoEventWhenItGoesOn) {
    std::mt19937 random(1);
    for (int life = 0; life < 4; ++life) {
        const NodeConfig all = config(GetParam());
        const Pipe to;
        const Pipe from;
        const pid_t child = ::fork();
        if (child == 0) {
            be_unit_2(all, to, from);
            ::_exit(0);
        }
        {
            NodesUnderTest run(all, {0, 1});
            run.at_addresses = [&](std::vector<Transport::Peer>& peers) {
                if (peers.size() == 3) {
                    for (const UnitIndex unit : first(3)) {
                        const auto its = std::ranges::find(peers, unit, &Transport::Peer::unit);
                        to.put(its->address);
                    }
                }
            };
            run.begin(first(3), {{UnitIndex(2), from.get()}});
            EXPECT_TRUE(run.builds({0, 1}, 5 + random() % 20));
            ::kill(child, SIGSTOP);
            int status = 0;
            ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
            ASSERT_TRUE(WIFSTOPPED(status));
            run.halt({0, 1}, {2});
            // Further epochs use the same memory.
            for (int epoch = 0; epoch < 3; ++epoch) {
                run.begin({0, 1});
                EXPECT_TRUE(run.builds({0, 1}, 200));
                if (epoch == 1) {
                    ::kill(child, SIGCONT);
                    to.put(std::as_bytes(std::span("?", 1)));
                    EXPECT_EQ(from.get().size(), 8U) << "it lives, and writes what it has to write";
                    EXPECT_TRUE(run.builds({0, 1}, 200));
                }
                run.halt({0, 1});
            }
            run.expect_all_checked();
            EXPECT_LE(run.accounted(), run.next_mep);
        }
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        for (const auto* pipe : {&to, &from}) {
            ::close(pipe->ends[0]);
            ::close(pipe->ends[1]);
        }
    }
}

}  // namespace
}  // namespace daqloom::live
