#include "live/transport/shm/connector.hpp"

#include <poll.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "live/memory/clock.hpp"

namespace daqloom::live {

namespace {

constexpr std::uint64_t kMagic = 0x6d6f6f6c'71616431;
constexpr base::Bytes kMostArena = base::Bytes{1} << 40;
/// Limit on connections without a greeting. A new connection replaces the oldest one.
constexpr std::size_t kMostUnidentified = 256;

/// The format of both hello and welcome.
struct Greeting {
    std::uint64_t magic = kMagic;
    Token token{};
    std::uint32_t epoch = 0;
    UnitIndex unit{};
    std::array<std::byte, 64> address{};  ///< padded with zeros
};
static_assert(std::has_unique_object_representations_v<Greeting>);

class PeerConnector {
  public:
    PeerConnector(const ShmEndpoint& endpoint, std::span<const Transport::Peer> peers)
        : endpoint_(endpoint),
          ours_{.token = endpoint.config.token,
                .epoch = endpoint.config.epoch,
                .unit = endpoint.config.self},
          halves_(endpoint.config.units) {
        std::ranges::copy(std::as_bytes(std::span(endpoint.address)), ours_.address.begin());
        for (const auto& peer : peers) {
            if (peer.unit != endpoint.config.self && halves_.contains(peer.unit) &&
                peer.address.size() <= ours_.address.size()) {
                halves_[peer.unit].expected = true;
                std::ranges::copy(peer.address, halves_[peer.unit].address.begin());
            }
        }
    }

    void send_hello(std::span<const Transport::Peer> peers);
    base::expected<bool> receive_next(base::Time until);
    [[nodiscard]] bool is_complete() const;
    base::Table<UnitIndex, std::optional<ShmPeer>> take();

  private:
    struct Half {
        bool expected = false;
        decltype(Greeting::address) address{};
        std::optional<Handover> to;
        std::optional<Handover> from;
        SharedMemory incoming;
        std::optional<Parcel> welcome;
    };

    std::optional<Greeting> read(const Parcel& parcel);
    base::expected<void> answer(Handover from);
    void receive_welcome(UnitIndex unit);
    void accept();
    std::optional<ShmPeer> assemble(Half& half);

    const ShmEndpoint& endpoint_;
    Greeting ours_;
    base::Table<UnitIndex, Half> halves_;
    std::vector<Handover> unidentified_;
};

void PeerConnector::send_hello(std::span<const Transport::Peer> peers) {
    for (const auto& peer : peers) {
        if (!halves_.contains(peer.unit) || !halves_[peer.unit].expected || halves_[peer.unit].to) {
            continue;
        }
        auto to = Handover::connect(
            std::string(reinterpret_cast<const char*>(peer.address.data()), peer.address.size()));
        if (to && to->send(std::as_bytes(std::span(&ours_, 1)))) {
            halves_[peer.unit].to.emplace(std::move(*to));
        }
    }
}

/// The greeting in a message; none: it is not of this run and epoch, which is counted.
std::optional<Greeting> PeerConnector::read(const Parcel& parcel) {
    Greeting greeting;
    if (parcel.bytes.size() == sizeof greeting) {
        std::memcpy(&greeting, parcel.bytes.data(), sizeof greeting);
    }
    if (parcel.bytes.size() != sizeof greeting || greeting.magic != kMagic ||
        greeting.token != endpoint_.config.token) {
        ++endpoint_.counters.refused_strangers;
    } else if (greeting.epoch != endpoint_.config.epoch) {
        ++endpoint_.counters.refused_epoch;
    } else {
        return greeting;
    }
    return std::nullopt;
}

base::expected<void> PeerConnector::answer(Handover from) {
    const auto parcel = from.receive(now());
    if (!parcel) {
        ++endpoint_.counters.refused_strangers;
        return {};
    }
    const auto hello = read(*parcel);
    if (!hello) {
        return {};
    }
    if (!halves_.contains(hello->unit) || !halves_[hello->unit].expected ||
        halves_[hello->unit].from || halves_[hello->unit].address != hello->address) {
        ++endpoint_.counters.refused_malformed;
        return {};
    }
    DAQLOOM_TRY(ring, SharedMemory::create("daqloom-ring", endpoint_.ring_bytes));
    const Doorbell& doorbell = *endpoint_.config.doorbell;
    std::vector<int> fds = {ring.fd(), doorbell.page_fd(), doorbell.event_fd()};
    if (endpoint_.config.arena != nullptr) {
        fds.push_back(endpoint_.config.arena->fd());
    }
    if (from.send(std::as_bytes(std::span(&ours_, 1)), fds)) {
        halves_[hello->unit].incoming = std::move(ring);
        halves_[hello->unit].from.emplace(std::move(from));
    }
    return {};
}

void PeerConnector::receive_welcome(UnitIndex unit) {
    Half& half = halves_[unit];
    auto parcel = half.to->receive(now());
    const auto greeting = parcel ? read(*parcel) : std::nullopt;
    if (!greeting) {
        half.to.reset();  // the peer is gone, or has refused us
    } else if (greeting->unit != unit || greeting->address != half.address ||
               (parcel->fds.size() != 3 && parcel->fds.size() != 4)) {
        ++endpoint_.counters.refused_malformed;
        half.to.reset();
    } else {
        half.welcome.emplace(std::move(*parcel));
    }
}

void PeerConnector::accept() {
    const std::uint64_t refused_before = endpoint_.listener.refused();
    auto connection = endpoint_.listener.accept(now());
    endpoint_.counters.refused_strangers += endpoint_.listener.refused() - refused_before;
    if (!connection) {
        return;
    }
    if (unidentified_.size() == kMostUnidentified) {
        unidentified_.erase(unidentified_.begin());
        ++endpoint_.counters.refused_strangers;
    }
    unidentified_.push_back(std::move(*connection));
}

/// Waits for the next connection and reads its greeting. False: none came before `until`.
base::expected<bool> PeerConnector::receive_next(base::Time until) {
    std::vector<pollfd> watched = {{endpoint_.listener.fd_to_poll(), POLLIN, 0}};
    std::vector<UnitIndex> awaited;
    for (const UnitIndex unit : halves_.indices()) {
        if (halves_[unit].to && !halves_[unit].welcome) {
            watched.push_back({halves_[unit].to->fd(), POLLIN, 0});
            awaited.push_back(unit);
        }
    }
    const std::size_t first_unidentified = watched.size();
    for (const auto& connection : unidentified_) {
        watched.push_back({connection.fd(), POLLIN, 0});
    }
    until = std::min({until, now() + base::seconds(1), endpoint_.listener.wake()});
    if (::poll(watched.data(), watched.size(), poll_timeout(until)) <= 0) {
        return false;
    }
    for (std::size_t i = 0; i < awaited.size(); ++i) {
        if (watched[1 + i].revents != 0) {
            receive_welcome(awaited[i]);
        }
    }
    std::vector<Handover> still_unidentified;
    for (std::size_t i = 0; i < unidentified_.size(); ++i) {
        if (watched[first_unidentified + i].revents == 0) {
            still_unidentified.push_back(std::move(unidentified_[i]));
        } else {
            DAQLOOM_CHECK(answer(std::move(unidentified_[i])));
        }
    }
    unidentified_ = std::move(still_unidentified);
    if (watched[0].revents != 0) {
        accept();
    }
    return true;
}

bool PeerConnector::is_complete() const {
    return std::ranges::all_of(halves_, [](const Half& half) {
        return !half.expected || !half.to || (half.welcome && half.from);
    });
}

std::optional<ShmPeer> PeerConnector::assemble(Half& half) {
    if (!half.to || !half.from || !half.welcome) {
        return std::nullopt;
    }
    auto& fds = half.welcome->fds;
    const auto access = SharedMemory::Access::read_write;
    auto ring = SharedMemory::attach(std::move(fds[0]), access, endpoint_.ring_bytes);
    auto doorbell = Doorbell::attach(std::move(fds[1]), std::move(fds[2]));
    auto arena = fds.size() == 4 ? SharedMemory::attach(std::move(fds[3]), access, kMostArena)
                                 : base::expected<SharedMemory>();
    if (!ring || static_cast<base::Bytes>(ring->bytes().size()) != endpoint_.ring_bytes ||
        !doorbell || !arena) {
        ++endpoint_.counters.refused_malformed;
        return std::nullopt;
    }
    arena->populate();
    return ShmPeer{.to = std::move(*half.to),
                   .from = std::move(*half.from),
                   .outgoing = std::move(*ring),
                   .incoming = std::move(half.incoming),
                   .doorbell = std::move(*doorbell),
                   .arena = std::move(*arena)};
}

base::Table<UnitIndex, std::optional<ShmPeer>> PeerConnector::take() {
    endpoint_.counters.refused_strangers += unidentified_.size();
    base::Table<UnitIndex, std::optional<ShmPeer>> peers;
    for (auto& half : halves_) {
        peers.push_back(assemble(half));
    }
    return peers;
}

}  // namespace

base::expected<base::Table<UnitIndex, std::optional<ShmPeer>>> connect_peers(
    const ShmEndpoint& endpoint, std::span<const Transport::Peer> peers, base::Time until) {
    PeerConnector connector(endpoint, peers);
    connector.send_hello(peers);
    base::expected<bool> received = true;
    while (received && !connector.is_complete() && now() < until) {
        received = connector.receive_next(until);
    }
    // Also count strangers that have connected until now.
    for (std::size_t i = 0; i < kMostUnidentified && received && *received; ++i) {
        received = connector.receive_next(now());
    }
    if (!received) {
        return tl::unexpected(received.error());
    }
    return connector.take();
}

}  // namespace daqloom::live
