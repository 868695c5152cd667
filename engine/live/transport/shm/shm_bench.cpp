// Two units in two processes on shared memory.
//
// `write`: writes of one unit to the other's arena, in pieces, until each is reported done. `copy`:
// the limit, the same pieces copied by a plain loop with non-temporal stores. `round_trip`: a small
// message there and back, with the units' way of waiting.
#include <benchmark/benchmark.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <stdexcept>
#include <utility>

#include "base/expected_test.hpp"
#include "live/memory/clock.hpp"
#include "live/memory/copy.hpp"
#include "live/transport/shm/shm.hpp"

namespace daqloom::live {
namespace {

constexpr std::size_t kArea = std::size_t{256} << 20;

SharedMemory touched_memory() {
    auto memory = base::value_of(SharedMemory::create("bench", kArea));
    std::memset(memory.bytes().data(), 1, kArea);
    return memory;
}

/// One of the two units, which counts its notifications.
class BenchUnit : public TransportEvents {
  public:
    /// `socket`: connected to the process of the other unit.
    BenchUnit(std::uint32_t self, Waiting waiting, int socket)
        : arena(touched_memory()),
          doorbell(base::value_of(Doorbell::create())),
          transport(base::value_of(ShmTransport::create({.self = UnitIndex(self),
                                                         .units = 2,
                                                         .arena = &arena,
                                                         .doorbell = &doorbell,
                                                         .waiting = waiting}))) {
        const auto address = transport->address();
        Transport::Peer other{UnitIndex(1 - self), std::vector<std::byte>(address.size())};
        const auto size = static_cast<ssize_t>(address.size());
        if (::send(socket, address.data(), address.size(), 0) != size ||
            ::recv(socket, other.address.data(), other.address.size(), 0) != size ||
            !base::value_of(transport->connect(std::span(&other, 1), now() + base::seconds(10)))
                 .empty()) {
            throw std::runtime_error("the two units do not find each other");
        }
    }

    void poll_or_wait() {
        if (!transport->poll(*this)) {
            transport->wait(now() + base::seconds(1));
        }
    }

    void on_message(UnitIndex from, std::span<const std::byte> bytes) override {
        ++messages;
        if (answers) {
            static_cast<void>(transport->send(from, bytes));
        }
    }
    void on_written(UnitIndex /*from*/, std::uint32_t /*immediate*/) override {}
    void on_write_done(std::uint64_t /*context*/) override { ++done; }
    void on_unreachable(UnitIndex /*unit*/) override { is_alone = true; }

    SharedMemory arena;
    Doorbell doorbell;
    std::unique_ptr<ShmTransport> transport;
    std::uint64_t messages = 0;
    std::uint64_t done = 0;
    bool answers = false;
    bool is_alone = false;
};

/// Runs `body` with unit 0. Unit 1, in its own process, answers messages until unit 0 is gone.
void with_another(Waiting waiting, const std::function<void(BenchUnit&)>& body) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) {
        throw std::runtime_error("no sockets");
    }
    const pid_t child = ::fork();
    if (child == 0) {
        BenchUnit unit(1, waiting, ends[1]);
        unit.answers = true;
        while (!unit.is_alone) {
            unit.poll_or_wait();
        }
        ::_exit(0);
    }
    BenchUnit unit(0, waiting, ends[0]);
    body(unit);
    unit.transport.reset();
    ::waitpid(child, nullptr, 0);
    ::close(ends[0]);
    ::close(ends[1]);
}

void write(benchmark::State& state, Waiting waiting) {
    const auto piece = static_cast<std::size_t>(state.range(0));
    const SharedMemory source = touched_memory();
    with_another(waiting, [&](BenchUnit& unit) {
        std::uint64_t asked = 0;
        std::size_t at = 0;
        const auto finish = [&](std::uint64_t outstanding) {
            while (asked - unit.done > outstanding) {
                unit.poll_or_wait();
            }
        };
        for (auto _ : state) {
            while (!unit.transport->write({.to = UnitIndex(1),
                                           .bytes = source.bytes().subspan(at, piece),
                                           .offset = static_cast<base::Bytes>(at)})) {
                unit.poll_or_wait();
            }
            ++asked;
            finish(8);
            at = at + 2 * piece <= kArea ? at + piece : 0;
        }
        finish(0);
    });
    state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * state.range(0));
}

void plain_copy(benchmark::State& state) {
    const auto piece = static_cast<std::size_t>(state.range(0));
    const SharedMemory source = touched_memory();
    const SharedMemory target = touched_memory();
    std::size_t at = 0;
    for (auto _ : state) {
        if (const auto ways = streaming_copies(); !ways.empty()) {
            ways.front().copy(target.bytes().data() + at, source.bytes().data() + at, piece);
        } else {
            std::memcpy(target.bytes().data() + at, source.bytes().data() + at, piece);
        }
        at = at + 2 * piece <= kArea ? at + piece : 0;
    }
    fence_copies();
    state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * state.range(0));
}

void round_trip(benchmark::State& state, Waiting waiting) {
    with_another(waiting, [&](BenchUnit& unit) {
        const std::byte message[64] = {};
        for (auto _ : state) {
            const std::uint64_t before = unit.messages;
            static_cast<void>(unit.transport->send(UnitIndex(1), message));
            while (unit.messages == before) {
                unit.poll_or_wait();
            }
        }
        state.counters["sleeps_per_trip"] =
            benchmark::Counter(static_cast<double>(unit.transport->counters().sleeps),
                               benchmark::Counter::kAvgIterations);
    });
}

#define DAQLOOM_SIZES RangeMultiplier(4)->Range(4 << 10, 4 << 20)->UseRealTime()

BENCHMARK(plain_copy)->Name("copy")->DAQLOOM_SIZES;
BENCHMARK_CAPTURE(write, blocking, Waiting::blocking)->DAQLOOM_SIZES;
BENCHMARK_CAPTURE(write, adaptive, Waiting::adaptive)->DAQLOOM_SIZES;
BENCHMARK_CAPTURE(round_trip, blocking, Waiting::blocking)->UseRealTime();
BENCHMARK_CAPTURE(round_trip, adaptive, Waiting::adaptive)->UseRealTime();
BENCHMARK_CAPTURE(round_trip, spinning, Waiting::spinning)->UseRealTime();

}  // namespace
}  // namespace daqloom::live
