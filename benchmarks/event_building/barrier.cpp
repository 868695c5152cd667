// Time of a barrier among processes of this machine: the event builder's own barriers, over its
// shared-memory transport, one after the other.
#include "protocol/schedule/barrier.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "live/memory/clock.hpp"
#include "live/transport/make.hpp"
#include "window.hpp"

namespace {

using namespace daqloom;

constexpr std::size_t kAddressRoom = 1024;

template <class T>
T or_give_up(base::expected<T> made) {
    if (!made) {
        std::fprintf(stderr, "%s\n", made.error().message.c_str());
        std::exit(1);
    }
    return std::move(*made);
}

/// One process: enters the next barrier as soon as it is released from the last.
class Member final : public live::TransportEvents {
  public:
    Member(live::Transport& transport, protocol::Barrier barrier)
        : transport_(transport), barrier_(std::move(barrier)) {}

    /// Returns when it is released.
    void pass() {
        const std::uint64_t generation = barrier_.generation();
        barrier_.enter(generation, *this);
        while (barrier_.generation() == generation) {
            if (!transport_.poll(*this)) {
                transport_.wait(live::now() + base::seconds(1));
            }
        }
    }

    // ---- what the barrier asks for
    void send_barrier(protocol::Participant to, protocol::BarrierMessage message) {
        while (!transport_.send(live::UnitIndex(to), std::as_bytes(std::span(&message, 1)))) {
            transport_.poll(*this);
        }
    }
    void released(std::uint64_t) {}

    // ---- what the transport tells
    void on_message(live::UnitIndex from, std::span<const std::byte> bytes) override {
        protocol::BarrierMessage message;
        if (bytes.size() == sizeof message) {
            std::memcpy(&message, bytes.data(), sizeof message);
            barrier_.on_message(from.value(), message, *this);
        }
    }
    void on_written(live::UnitIndex, std::uint32_t) override {}
    void on_write_done(std::uint64_t) override {}
    void on_unreachable(live::UnitIndex) override { std::exit(1); }

  private:
    live::Transport& transport_;
    protocol::Barrier barrier_;
};

/// Addresses of all processes, each written by its own.
struct Addresses {
    std::atomic<std::uint32_t> written;
    struct {
        std::size_t length;
        std::byte bytes[kAddressRoom];
    } slots[256];
};

std::vector<live::Transport::Peer> exchange(Addresses& all, std::size_t self, std::size_t processes,
                                            const std::vector<std::byte>& address) {
    std::ranges::copy(address, all.slots[self].bytes);
    all.slots[self].length = address.size();
    all.written.fetch_add(1);
    while (all.written.load() < processes) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::vector<live::Transport::Peer> peers;
    for (std::size_t i = 0; i < processes; ++i) {
        peers.push_back(
            {live::UnitIndex(i), {all.slots[i].bytes, all.slots[i].bytes + all.slots[i].length}});
    }
    return peers;
}

}  // namespace

int main(int argc, char** argv) {
    // kind: 0 centralised, 1 tournament, 2 dissemination
    const bench::Options options(argc, argv,
                                 {{"processes", 2}, {"kind", 1}, {"warmup", 0.2}, {"seconds", 1}});
    const std::size_t processes = options.whole("processes");
    void* memory = ::mmap(nullptr, sizeof(Addresses), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        bench::give_up("shared memory");
    }
    auto& addresses = *new (memory) Addresses{};
    const bench::Rate passed = bench::rate(
        processes, options.number("warmup"), options.number("seconds"),
        [&](std::size_t self, bench::Shared& shared) {
            const auto doorbell = or_give_up(live::Doorbell::create());
            live::TransportConfig config;
            config.self = live::UnitIndex(self);
            config.units = static_cast<std::uint32_t>(processes);
            config.doorbell = &doorbell;
            const auto transport = or_give_up(live::make_transport("shm", config));
            const auto peers = exchange(addresses, self, processes, transport->address());
            const auto silent =
                or_give_up(transport->connect(peers, live::now() + base::seconds(10)));
            if (!silent.empty()) {
                bench::give_up("connecting");
            }
            Member member(*transport,
                          or_give_up(protocol::Barrier::make(
                              {.kind = static_cast<protocol::BarrierKind>(options.whole("kind")),
                               .participants = static_cast<protocol::Participant>(processes),
                               .self = static_cast<protocol::Participant>(self)})));
            shared.wait_for_go();
            while (true) {
                member.pass();
                shared.add(self, 1);
            }
        });
    // Each barrier is counted by every process.
    std::printf("{\"barrier_s\": %.6g, \"cpu_s\": %.6g}\n",
                static_cast<double>(processes) / passed.per_s, 1 / passed.per_cpu_s);
}
