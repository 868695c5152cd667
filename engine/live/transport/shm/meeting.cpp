#include "live/transport/shm/meeting.hpp"

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
/// Limit on connections without a greeting; the oldest makes room for a new one.
constexpr std::size_t kMostSilent = 256;

/// The format of both hello and welcome.
struct Greeting {
    std::uint64_t magic = kMagic;
    Token token{};
    std::uint32_t epoch = 0;
    UnitIndex unit{};
    std::array<std::byte, 64> address{};  ///< padded with zeros
};
static_assert(std::has_unique_object_representations_v<Greeting>);

class Introduction {
  public:
    Introduction(const ShmMeeting& meeting, std::span<const Transport::Peer> peers)
        : meeting_(meeting),
          ours_{.token = meeting.config.token,
                .epoch = meeting.config.epoch,
                .unit = meeting.config.self},
          met_(meeting.config.units) {
        std::ranges::copy(std::as_bytes(std::span(meeting.address)), ours_.address.begin());
        for (const auto& peer : peers) {
            if (peer.unit != meeting.config.self && met_.contains(peer.unit) &&
                peer.address.size() <= ours_.address.size()) {
                met_[peer.unit].expected = true;
                std::ranges::copy(peer.address, met_[peer.unit].address.begin());
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
    std::optional<ShmPeer> put_together(Half& half);

    const ShmMeeting& meeting_;
    Greeting ours_;
    base::Table<UnitIndex, Half> met_;
    std::vector<Handover> silent_;
};

void Introduction::send_hello(std::span<const Transport::Peer> peers) {
    for (const auto& peer : peers) {
        if (!met_.contains(peer.unit) || !met_[peer.unit].expected || met_[peer.unit].to) {
            continue;
        }
        auto to = Handover::connect(
            std::string(reinterpret_cast<const char*>(peer.address.data()), peer.address.size()));
        if (to && to->send(std::as_bytes(std::span(&ours_, 1)))) {
            met_[peer.unit].to.emplace(std::move(*to));
        }
    }
}

/// The greeting, if it is of our run and epoch; otherwise it is counted.
std::optional<Greeting> Introduction::read(const Parcel& parcel) {
    Greeting greeting;
    if (parcel.bytes.size() == sizeof greeting) {
        std::memcpy(&greeting, parcel.bytes.data(), sizeof greeting);
    }
    if (parcel.bytes.size() != sizeof greeting || greeting.magic != kMagic ||
        greeting.token != meeting_.config.token) {
        ++meeting_.counters.refused_strangers;
    } else if (greeting.epoch != meeting_.config.epoch) {
        ++meeting_.counters.refused_epoch;
    } else {
        return greeting;
    }
    return std::nullopt;
}

base::expected<void> Introduction::answer(Handover from) {
    const auto parcel = from.receive(now());
    if (!parcel) {
        ++meeting_.counters.refused_strangers;
        return {};
    }
    const auto hello = read(*parcel);
    if (!hello) {
        return {};
    }
    if (!met_.contains(hello->unit) || !met_[hello->unit].expected || met_[hello->unit].from ||
        met_[hello->unit].address != hello->address) {
        ++meeting_.counters.refused_malformed;
        return {};
    }
    DAQLOOM_TRY(ring, SharedMemory::create("daqloom-ring", meeting_.ring_bytes));
    const Doorbell& doorbell = *meeting_.config.doorbell;
    std::vector<int> fds = {ring.fd(), doorbell.page_fd(), doorbell.event_fd()};
    if (meeting_.config.arena != nullptr) {
        fds.push_back(meeting_.config.arena->fd());
    }
    if (from.send(std::as_bytes(std::span(&ours_, 1)), fds)) {
        met_[hello->unit].incoming = std::move(ring);
        met_[hello->unit].from.emplace(std::move(from));
    }
    return {};
}

void Introduction::receive_welcome(UnitIndex unit) {
    Half& half = met_[unit];
    auto parcel = half.to->receive(now());
    const auto greeting = parcel ? read(*parcel) : std::nullopt;
    if (!greeting) {
        half.to.reset();  // the peer is gone, or has refused us
    } else if (greeting->unit != unit || greeting->address != half.address ||
               (parcel->fds.size() != 3 && parcel->fds.size() != 4)) {
        ++meeting_.counters.refused_malformed;
        half.to.reset();
    } else {
        half.welcome.emplace(std::move(*parcel));
    }
}

void Introduction::accept() {
    const std::uint64_t refused_before = meeting_.listener.refused();
    auto visitor = meeting_.listener.accept(now());
    meeting_.counters.refused_strangers += meeting_.listener.refused() - refused_before;
    if (!visitor) {
        return;
    }
    if (silent_.size() == kMostSilent) {
        silent_.erase(silent_.begin());
        ++meeting_.counters.refused_strangers;
    }
    silent_.push_back(std::move(*visitor));
}

/// Waits for the next connection and reads its greeting; false: none by then.
base::expected<bool> Introduction::receive_next(base::Time until) {
    std::vector<pollfd> watched = {{meeting_.listener.fd_to_poll(), POLLIN, 0}};
    std::vector<UnitIndex> awaited;
    for (const UnitIndex unit : met_.indices()) {
        if (met_[unit].to && !met_[unit].welcome) {
            watched.push_back({met_[unit].to->fd(), POLLIN, 0});
            awaited.push_back(unit);
        }
    }
    const std::size_t first_silent = watched.size();
    for (const auto& visitor : silent_) {
        watched.push_back({visitor.fd(), POLLIN, 0});
    }
    until = std::min({until, now() + base::seconds(1), meeting_.listener.wake()});
    if (::poll(watched.data(), watched.size(), poll_timeout(until)) <= 0) {
        return false;
    }
    for (std::size_t i = 0; i < awaited.size(); ++i) {
        if (watched[1 + i].revents != 0) {
            receive_welcome(awaited[i]);
        }
    }
    std::vector<Handover> still_silent;
    for (std::size_t i = 0; i < silent_.size(); ++i) {
        if (watched[first_silent + i].revents == 0) {
            still_silent.push_back(std::move(silent_[i]));
        } else {
            DAQLOOM_CHECK(answer(std::move(silent_[i])));
        }
    }
    silent_ = std::move(still_silent);
    if (watched[0].revents != 0) {
        accept();
    }
    return true;
}

bool Introduction::is_complete() const {
    return std::ranges::all_of(met_, [](const Half& half) {
        return !half.expected || !half.to || (half.welcome && half.from);
    });
}

std::optional<ShmPeer> Introduction::put_together(Half& half) {
    if (!half.to || !half.from || !half.welcome) {
        return std::nullopt;
    }
    auto& fds = half.welcome->fds;
    const auto access = SharedMemory::Access::read_write;
    auto ring = SharedMemory::attach(std::move(fds[0]), access, meeting_.ring_bytes);
    auto doorbell = Doorbell::attach(std::move(fds[1]), std::move(fds[2]));
    auto arena = fds.size() == 4 ? SharedMemory::attach(std::move(fds[3]), access, kMostArena)
                                 : base::expected<SharedMemory>();
    if (!ring || static_cast<base::Bytes>(ring->bytes().size()) != meeting_.ring_bytes ||
        !doorbell || !arena) {
        ++meeting_.counters.refused_malformed;
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

base::Table<UnitIndex, std::optional<ShmPeer>> Introduction::take() {
    meeting_.counters.refused_strangers += silent_.size();
    base::Table<UnitIndex, std::optional<ShmPeer>> peers;
    for (auto& half : met_) {
        peers.push_back(put_together(half));
    }
    return peers;
}

}  // namespace

base::expected<base::Table<UnitIndex, std::optional<ShmPeer>>> meet(
    const ShmMeeting& meeting, std::span<const Transport::Peer> peers, base::Time until) {
    Introduction introduction(meeting, peers);
    introduction.send_hello(peers);
    base::expected<bool> received = true;
    while (received && !introduction.is_complete() && now() < until) {
        received = introduction.receive_next(until);
    }
    // Strangers that have connected by now are counted.
    for (std::size_t i = 0; i < kMostSilent && received && *received; ++i) {
        received = introduction.receive_next(now());
    }
    if (!received) {
        return tl::unexpected(received.error());
    }
    return introduction.take();
}

}  // namespace daqloom::live
