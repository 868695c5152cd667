#include "live/transport/tcp/meeting.hpp"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "live/memory/clock.hpp"
#include "live/memory/epoll.hpp"

namespace daqloom::live {

namespace {

/// A unit's address, as it passes through the run control.
struct AddressOnPaper {
    static constexpr std::uint32_t our_magic = 0x31'74'6c'64;  ///< "dlt1"

    std::uint32_t magic = our_magic;
    std::uint32_t length = 0;
    std::uint64_t incarnation = 0;
    std::array<std::byte, sizeof(sockaddr_in6)> address{};
};

constexpr base::Time kDeafTime = base::milliseconds(50);
constexpr std::uint64_t kMeetingListener = ~std::uint64_t{0};

}  // namespace

base::expected<TcpMeeting> TcpMeeting::open(const TransportConfig& config, const TcpConfig& tcp) {
    DAQLOOM_TRY(where, address_of_node(tcp.node));
    DAQLOOM_TRY(listener, listen_at(where, tcp));
    OwnedFd epoll(::epoll_create1(EPOLL_CLOEXEC));
    std::uint64_t incarnation = 0;
    if (!epoll || !watch(epoll.get(), listener.get(), EPOLLIN, kMeetingListener)) {
        return base::system_failure(fmt::format("cannot watch sockets: {}", std::strerror(errno)));
    }
    if (::getrandom(&incarnation, sizeof incarnation, 0) != sizeof incarnation) {
        return base::system_failure("the system gives no random numbers");
    }
    return TcpMeeting(config, tcp, where, std::move(listener), std::move(epoll), incarnation);
}

TcpMeeting::TcpMeeting(const TransportConfig& config, const TcpConfig& tcp, SocketAddress where,
                       OwnedFd listener, OwnedFd epoll, std::uint64_t incarnation)
    : tcp_(tcp),
      where_(where),
      listener_(std::move(listener)),
      epoll_(std::move(epoll)),
      incarnation_(incarnation),
      sealer_(config.token, config.self, config.units, config.epoch, incarnation),
      self_(config.self),
      arena_(config.arena != nullptr ? config.arena->bytes().size() : 0),
      guests_(kGuests + config.units) {}

std::vector<std::byte> TcpMeeting::address() const {
    AddressOnPaper paper;
    paper.length = where_.length;
    paper.incarnation = incarnation_;
    std::memcpy(paper.address.data(), &where_.address, where_.length);
    const auto bytes = std::as_bytes(std::span(&paper, 1));
    return {bytes.begin(), bytes.end()};
}

std::optional<TcpMeeting::ExpectedPeer> TcpMeeting::read_address(
    const Transport::Peer& peer) const {
    AddressOnPaper paper;
    if (peer.address.size() != sizeof paper) {
        return std::nullopt;
    }
    std::memcpy(&paper, peer.address.data(), sizeof paper);
    ExpectedPeer expected{.unit = peer.unit, .where = {}, .incarnation = paper.incarnation};
    if (paper.magic != AddressOnPaper::our_magic || paper.length > paper.address.size()) {
        return std::nullopt;
    }
    std::memcpy(&expected.where.address, paper.address.data(), paper.length);
    expected.where.length = paper.length;
    const bool is_whole =
        paper.length ==
        (expected.where.address.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    return expected.where.is_internet() && is_whole ? std::optional(expected) : std::nullopt;
}

base::expected<std::vector<MetUnit>> TcpMeeting::meet(std::span<const Transport::Peer> peers,
                                                      base::Time until,
                                                      TransportCounters& counters) {
    for (const Transport::Peer& peer : peers) {
        if (auto found = read_address(peer); found && peer.unit != self_) {
            expected_.push_back(std::move(*found));
        }
    }
    for (ExpectedPeer& each : expected_) {
        if (each.unit < self_) {
            call(each);
        }
    }
    const auto is_over = [this] {
        return std::ranges::all_of(
            expected_, [](const ExpectedPeer& each) { return each.is_met || each.is_hopeless; });
    };
    while (!is_over() && now() < until) {
        const base::Time wake = is_deaf_ ? std::min(until, now() + kDeafTime) : until;
        const int count = look_at_all(poll_timeout(wake), counters);
        if (is_deaf_ && count == 0) {
            watch_listener(true);
        }
        if (count < 0 && errno != EINTR) {
            return base::system_failure(
                fmt::format("cannot wait for other units: {}", std::strerror(errno)));
        }
    }
    for (Guest& guest : guests_) {
        if (guest.called) {
            dismiss(guest);  // the unit has not answered
        }
    }
    expected_.clear();
    return std::exchange(met_, {});
}

/// Waits for this time, as epoll_wait(2) does, and returns its result.
int TcpMeeting::look_at_all(int timeout_ms, TransportCounters& counters) {
    std::array<epoll_event, 64> came{};
    const int count = ::epoll_wait(epoll_.get(), came.data(), came.size(), timeout_ms);
    for (const epoll_event& event :
         std::span(came).first(static_cast<std::size_t>(std::max(count, 0)))) {
        if (event.data.u64 == kMeetingListener) {
            accept_guests(counters);
        } else {
            look_at(guests_[event.data.u64], counters);
        }
    }
    return count;
}

void TcpMeeting::call(ExpectedPeer& peer) {
    SocketAddress from = where_;
    from.set_port(source_port(tcp_, self_, peer.unit));
    OwnedFd socket = begin_to_connect(from, peer.where, tcp_);
    peer.is_hopeless =
        !socket || admit(std::move(socket), peer.unit, EPOLLOUT | EPOLLIN) == nullptr;
}

/// Without a free descriptor the listener stays readable: it is not watched until a guest has left,
/// or, while units are met, until the next turn. A stranger may stay connected until another guest
/// needs its place.
void TcpMeeting::accept_guests(TransportCounters& counters) {
    OwnedFd socket = accept_one(listener_.get());
    if (!socket) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
            watch_listener(false);
        }
        return;
    }
    if (admit(std::move(socket), std::nullopt, EPOLLIN) == nullptr) {
        ++counters.refused_strangers;
    }
}

TcpMeeting::Guest* TcpMeeting::admit(OwnedFd socket, std::optional<UnitIndex> called,
                                     std::uint32_t events) {
    auto free = std::ranges::find_if(guests_, [](const Guest& guest) { return !guest.socket; });
    for (std::size_t i = 0; free == guests_.end() && i < guests_.size(); ++i) {
        longest_here_ = (longest_here_ + 1) % guests_.size();
        if (!guests_[longest_here_].called) {
            dismiss(guests_[longest_here_]);
            free = guests_.begin() + static_cast<std::ptrdiff_t>(longest_here_);
        }
    }
    const auto number = static_cast<std::uint64_t>(free - guests_.begin());
    if (free == guests_.end() || !watch(epoll_.get(), socket.get(), events, number)) {
        return nullptr;
    }
    free->socket = std::move(socket);
    free->called = called;
    return &*free;
}

void TcpMeeting::watch_listener(bool is_watched) {
    epoll_event event{};
    event.events = is_watched ? std::uint32_t{EPOLLIN} : 0;
    event.data.u64 = kMeetingListener;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), &event);
    is_deaf_ = !is_watched;
}

/// Closes a connection; a unit that it was made to will not be met.
void TcpMeeting::dismiss(Guest& guest) {
    if (ExpectedPeer* const unit = guest.called ? expected_peer(*guest.called) : nullptr) {
        unit->is_hopeless = true;
    }
    guest = Guest{};
    if (is_deaf_) {
        watch_listener(true);
    }
}

TcpMeeting::ExpectedPeer* TcpMeeting::expected_peer(UnitIndex unit) {
    const auto found = std::ranges::find(expected_, unit, &ExpectedPeer::unit);
    return found == expected_.end() || found->is_met ? nullptr : &*found;
}

bool TcpMeeting::greet(const Guest& guest, Envelope::Kind kind, UnitIndex to) const {
    std::array<std::byte, sizeof(Envelope) + sizeof(std::uint64_t)> greeting;
    const Envelope envelope = sealer_.seal(kind, to, sizeof arena_);
    std::memcpy(greeting.data(), &envelope, sizeof envelope);
    std::memcpy(greeting.data() + sizeof envelope, &arena_, sizeof arena_);
    // The send buffer of a new connection has room for this.
    return ::send(guest.socket.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(greeting.size());
}

void TcpMeeting::look_at(Guest& guest, TransportCounters& counters) {
    if (!guest.socket) {
        return;  // dismissed meanwhile
    }
    if (guest.called && !guest.has_greeted) {
        guest.has_greeted = greet(guest, Envelope::Kind::hello, *guest.called);
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = static_cast<std::uint64_t>(&guest - guests_.data());
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, guest.socket.get(), &event);
        if (!guest.has_greeted) {
            dismiss(guest);  // no listener there
        }
        return;
    }
    const auto room = std::span(guest.received).subspan(guest.bytes);
    const ssize_t count = ::recv(guest.socket.get(), room.data(), room.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (count <= 0) {
        // A called unit has refused this one, and counts that; or it is gone.
        counters.refused_strangers += guest.called ? 0 : 1;
        return dismiss(guest);
    }
    guest.bytes += static_cast<std::size_t>(count);
    if (guest.bytes == guest.received.size()) {
        on_greeting(guest, counters);
    }
}

/// Handles a complete identification.
void TcpMeeting::on_greeting(Guest& guest, TransportCounters& counters) {
    const Sealer::Opened opened = sealer_.open(guest.received);
    ExpectedPeer* unit =
        opened.verdict == Sealer::Verdict::ours ? expected_peer(opened.from) : nullptr;
    const auto kind = guest.called ? Envelope::Kind::answer : Envelope::Kind::hello;
    if (unit != nullptr && opened.kind == kind && opened.incarnation == unit->incarnation &&
        (guest.called ? *guest.called == opened.from : opened.from > self_) &&
        (guest.called || greet(guest, Envelope::Kind::answer, opened.from))) {
        unit->is_met = true;
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, guest.socket.get(), nullptr);
        MetUnit met{.unit = opened.from, .socket = std::move(guest.socket)};
        std::memcpy(&met.arena, opened.message.data(), sizeof met.arena);
        met_.push_back(std::move(met));
        return dismiss(guest);
    }
    switch (opened.verdict) {
        case Sealer::Verdict::stranger:
            ++counters.refused_strangers;
            break;
        case Sealer::Verdict::other_epoch: {
            ++counters.refused_epoch;
            Envelope theirs;
            std::memcpy(&theirs, guest.received.data(), sizeof theirs);
            static_cast<void>(greet(guest, Envelope::Kind::answer, theirs.from));
            break;
        }
        case Sealer::Verdict::malformed:
        case Sealer::Verdict::ours:
            ++counters.refused_malformed;
            break;
    }
    dismiss(guest);
}

}  // namespace daqloom::live
