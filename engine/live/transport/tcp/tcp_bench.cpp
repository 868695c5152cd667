// One-way writes of one unit into another's arena over TCP, by `tcp` and by libfabric, each unit in
// its own thread. The limit is measured in the same run: the same bytes through a raw connection.
//
// Raw sockets and `tcp` are measured with each congestion control of the system. libfabric's
// sockets use the default of the system or the route. For a fair comparison, set the default in
// your own network namespace:
//
//     unshare -n sh -c 'ip link set lo up; sysctl -q net.ipv4.tcp_congestion_control=cubic; BENCH'
#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/expected_test.hpp"
#include "live/memory/clock.hpp"
#include "live/transport/make.hpp"

namespace daqloom::live {
namespace {

constexpr std::size_t kArena = 64 << 20;
constexpr int kUnderWay = 16;

struct Unit final : TransportEvents {
    Unit(const std::string& name, const TcpConfig& tcp, std::uint32_t self)
        : arena(base::value_of(SharedMemory::create("bench-arena", kArena))),
          source(base::value_of(SharedMemory::create("bench-source", kArena))),
          doorbell(base::value_of(Doorbell::create())) {
        TransportConfig config;
        config.self = UnitIndex(self);
        config.units = 2;
        config.arena = &arena;
        config.sources = {source.bytes()};
        config.doorbell = &doorbell;
        config.waiting = Waiting::blocking;
        transport = base::value_of(make_transport(name, config, tcp));
        std::memset(source.bytes().data(), 1, kArena);
        std::memset(arena.bytes().data(), 1, kArena);
    }
    void on_message(UnitIndex, std::span<const std::byte>) override {}
    void on_written(UnitIndex, std::uint32_t) override { ++written; }
    void on_write_done(std::uint64_t) override { ++done; }
    void on_unreachable(UnitIndex) override { throw std::runtime_error("lost"); }
    void work() {
        if (!transport->poll(*this)) {
            transport->wait(now() + base::milliseconds(10));
        }
    }

    SharedMemory arena;
    SharedMemory source;
    Doorbell doorbell;
    std::unique_ptr<Transport> transport;
    std::uint64_t done = 0;
    std::atomic<std::uint64_t> written = 0;
};

void write_to(benchmark::State& state, const std::string& name, const TcpConfig& tcp) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    Unit from(name, tcp, 0);
    Unit to(name, tcp, 1);
    const Transport::Peer peers[] = {{UnitIndex(0), from.transport->address()},
                                     {UnitIndex(1), to.transport->address()}};
    std::atomic<bool> is_over = false;
    std::thread receiver([&] {
        static_cast<void>(to.transport->connect(peers, now() + base::seconds(10)));
        while (!is_over) {
            to.work();
        }
    });
    static_cast<void>(from.transport->connect(peers, now() + base::seconds(10)));

    std::uint64_t started = 0;
    const auto slots = kArena / bytes;
    for (auto _ : state) {
        const std::size_t at = started % slots * bytes;
        const Write write{.to = UnitIndex(1),
                          .bytes = from.source.bytes().subspan(at, bytes),
                          .offset = static_cast<base::Bytes>(at)};
        while (started - from.done >= kUnderWay || !from.transport->write(write)) {
            from.work();
        }
        ++started;
    }
    while (to.written < started) {
        from.work();
    }
    is_over = true;
    to.doorbell.ring();
    receiver.join();
    state.SetBytesProcessed(static_cast<std::int64_t>(started * bytes));
    state.counters["sleeps_per_write"] =
        static_cast<double>(from.transport->counters().sleeps + to.transport->counters().sleeps) /
        static_cast<double>(started);
}

/// A connection over loopback: sending end, receiving end.
std::pair<OwnedFd, OwnedFd> connection(const std::string& congestion_control) {
    const OwnedFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    ::bind(listener.get(), generic, length);
    ::listen(listener.get(), 1);
    ::getsockname(listener.get(), generic, &length);
    OwnedFd sender(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::setsockopt(sender.get(), IPPROTO_TCP, TCP_CONGESTION, congestion_control.data(),
                     static_cast<socklen_t>(congestion_control.size())) != 0 ||
        ::connect(sender.get(), generic, length) != 0) {
        throw std::runtime_error("no connection with " + congestion_control);
    }
    const int one = 1;
    ::setsockopt(sender.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return {std::move(sender), OwnedFd(::accept(listener.get(), nullptr, nullptr))};
}

void raw_sockets(benchmark::State& state, const std::string& congestion_control) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    const auto [sender, receiver] = connection(congestion_control);
    // Memory like the arena's, with small pages.
    const auto source_memory = base::value_of(SharedMemory::create("bench-source", kArena));
    const auto arena_memory = base::value_of(SharedMemory::create("bench-arena", kArena));
    const auto source = source_memory.bytes();
    const auto arena = arena_memory.bytes();
    std::memset(source.data(), 1, kArena);
    std::memset(arena.data(), 1, kArena);
    std::thread reader([&] {
        std::size_t at = 0;
        while (true) {
            const auto got = ::recv(receiver.get(), arena.data() + at, kArena - at, 0);
            if (got <= 0) {
                return;
            }
            at = (at + static_cast<std::size_t>(got)) % kArena;
        }
    });
    std::uint64_t sent = 0;
    const auto slots = kArena / bytes;
    for (auto _ : state) {
        const std::byte* from = source.data() + sent++ % slots * bytes;
        for (std::size_t done = 0; done < bytes;) {
            const auto more = ::send(sender.get(), from + done, bytes - done, MSG_NOSIGNAL);
            if (more < 0) {
                throw std::runtime_error("the connection broke");
            }
            done += static_cast<std::size_t>(more);
        }
    }
    ::shutdown(sender.get(), SHUT_WR);
    reader.join();
    state.SetBytesProcessed(static_cast<std::int64_t>(sent * bytes));
}

std::vector<std::string> words(const char* file) {
    std::ifstream in(file);
    std::vector<std::string> found;
    for (std::string word; in >> word;) {
        found.push_back(word);
    }
    return found;
}

int register_all() {
    const auto sizes = [](benchmark::internal::Benchmark* one) {
        one->Arg(1 << 10)
            ->Arg(8 << 10)
            ->Arg(64 << 10)
            ->Arg(512 << 10)
            ->Arg(4 << 20)
            ->UseRealTime()
            ->MeasureProcessCPUTime();
    };
    for (const auto& provider : libfabric_providers()) {
        if (provider.name.find("tcp") != std::string::npos || provider.name == "net") {
            sizes(benchmark::RegisterBenchmark(
                ("libfabric:" + provider.name).c_str(),
                [name = "libfabric:" + provider.name](benchmark::State& state) {
                    write_to(state, name, {});
                }));
        }
    }
    const auto standing = words("/proc/sys/net/ipv4/tcp_congestion_control");
    for (const auto& name : words("/proc/sys/net/ipv4/tcp_available_congestion_control")) {
        const bool is_standing = !standing.empty() && name == standing.front();
        const std::string suffix = name + (is_standing ? " (the system's)" : "");
        sizes(benchmark::RegisterBenchmark(("tcp:" + suffix).c_str(),
                                           [name](benchmark::State& state) {
                                               write_to(state, "tcp", {.congestion_control = name});
                                           }));
        sizes(benchmark::RegisterBenchmark(
            ("tcp with checksums:" + suffix).c_str(), [name](benchmark::State& state) {
                write_to(state, "tcp", {.congestion_control = name, .checksums = true});
            }));
        sizes(benchmark::RegisterBenchmark(
            ("sockets:" + suffix).c_str(),
            [name](benchmark::State& state) { raw_sockets(state, name); }));
    }
    return 0;
}

[[maybe_unused]] const int registered = register_all();

}  // namespace
}  // namespace daqloom::live
