#include "live/transport/tcp/connector.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "live/memory/clock.hpp"
#include "live/memory/epoll.hpp"

namespace daqloom::live {

namespace {

/// A unit's address, as passed on by the run control.
struct AddressRecord {
    static constexpr std::uint32_t our_magic = 0x31'74'6c'64;  ///< "dlt1"

    std::uint32_t magic = our_magic;
    std::uint32_t length = 0;
    std::uint64_t incarnation = 0;
    std::array<std::byte, sizeof(sockaddr_in6)> address{};
};

constexpr base::Time kListenerPause = base::milliseconds(50);
constexpr std::uint64_t kListener = ~std::uint64_t{0};

}  // namespace

base::expected<TcpConnector> TcpConnector::open(const TransportConfig& config,
                                                const TcpConfig& tcp) {
    DAQLOOM_TRY(where, address_of_node(tcp.node));
    DAQLOOM_TRY(listener, listen_at(where, tcp));
    OwnedFd epoll(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll || !watch(epoll.get(), listener.get(), EPOLLIN, kListener)) {
        return base::system_failure(fmt::format("cannot watch sockets: {}", std::strerror(errno)));
    }
    DAQLOOM_TRY(incarnation, random_bits());
    return TcpConnector(config, tcp, where, std::move(listener), std::move(epoll), incarnation);
}

TcpConnector::TcpConnector(const TransportConfig& config, const TcpConfig& tcp, SocketAddress where,
                           OwnedFd listener, OwnedFd epoll, std::uint64_t incarnation)
    : tcp_(tcp),
      where_(where),
      listener_(std::move(listener)),
      epoll_(std::move(epoll)),
      incarnation_(incarnation),
      sealer_(config.token, config.self, config.units, config.epoch, incarnation),
      self_(config.self),
      arena_(config.arena != nullptr ? config.arena->bytes().size() : 0),
      pending_(kMostPending + config.units) {}

std::vector<std::byte> TcpConnector::address() const {
    AddressRecord record;
    record.length = where_.length;
    record.incarnation = incarnation_;
    std::memcpy(record.address.data(), &where_.address, where_.length);
    const auto bytes = std::as_bytes(std::span(&record, 1));
    return {bytes.begin(), bytes.end()};
}

std::optional<TcpConnector::ExpectedPeer> TcpConnector::read_address(
    const Transport::Peer& peer) const {
    AddressRecord record;
    if (peer.address.size() != sizeof record) {
        return std::nullopt;
    }
    std::memcpy(&record, peer.address.data(), sizeof record);
    ExpectedPeer expected{.unit = peer.unit, .where = {}, .incarnation = record.incarnation};
    if (record.magic != AddressRecord::our_magic || record.length > record.address.size()) {
        return std::nullopt;
    }
    std::memcpy(&expected.where.address, record.address.data(), record.length);
    expected.where.length = record.length;
    const bool is_whole =
        record.length ==
        (expected.where.address.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    return expected.where.is_internet() && is_whole ? std::optional(expected) : std::nullopt;
}

base::expected<std::vector<ConnectedUnit>> TcpConnector::connect(
    std::span<const Transport::Peer> peers, base::Time until, TransportCounters& counters) {
    for (const Transport::Peer& peer : peers) {
        if (auto found = read_address(peer); found && peer.unit != self_) {
            expected_.push_back(std::move(*found));
        }
    }
    for (ExpectedPeer& each : expected_) {
        if (each.unit < self_) {
            begin_connecting(each);
        }
    }
    const auto is_over = [this] {
        return std::ranges::all_of(expected_, [](const ExpectedPeer& each) {
            return each.is_connected || each.is_unreachable;
        });
    };
    while (!is_over() && now() < until) {
        const base::Time wake =
            is_listener_paused_ ? std::min(until, now() + kListenerPause) : until;
        const int count = wait_and_handle(poll_timeout(wake), counters);
        if (is_listener_paused_ && count == 0) {
            watch_listener(true);
        }
        if (count < 0 && errno != EINTR) {
            return base::system_failure(
                fmt::format("cannot wait for other units: {}", std::strerror(errno)));
        }
    }
    for (PendingConnection& connection : pending_) {
        if (connection.peer) {
            close(connection);  // the unit has not answered
        }
    }
    expected_.clear();
    return std::exchange(connected_, {});
}

/// Waits like epoll_wait(2), handles the events, and returns the result of epoll_wait.
int TcpConnector::wait_and_handle(int timeout_ms, TransportCounters& counters) {
    std::array<epoll_event, 64> events{};
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), timeout_ms);
    for (const epoll_event& event :
         std::span(events).first(static_cast<std::size_t>(std::max(count, 0)))) {
        if (event.data.u64 == kListener) {
            accept_connection(counters);
        } else {
            on_event(pending_[event.data.u64], counters);
        }
    }
    return count;
}

void TcpConnector::begin_connecting(ExpectedPeer& peer) {
    SocketAddress from = where_;
    from.set_port(source_port(tcp_, self_, peer.unit));
    OwnedFd socket = begin_to_connect(from, peer.where, tcp_);
    peer.is_unreachable =
        !socket || add_pending(std::move(socket), peer.unit, EPOLLOUT | EPOLLIN) == nullptr;
}

/// Accepts one connection. Without a free file descriptor the listener would stay readable, so it
/// is not watched until a connection is closed or, during `connect`, until the next turn. A
/// stranger may stay connected until another connection needs its place.
void TcpConnector::accept_connection(TransportCounters& counters) {
    OwnedFd socket = accept_one(listener_.get());
    if (!socket) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
            watch_listener(false);
        }
        return;
    }
    if (add_pending(std::move(socket), std::nullopt, EPOLLIN) == nullptr) {
        ++counters.refused_strangers;
    }
}

TcpConnector::PendingConnection* TcpConnector::add_pending(OwnedFd socket,
                                                           std::optional<UnitIndex> peer,
                                                           std::uint32_t events) {
    auto free = std::ranges::find_if(
        pending_, [](const PendingConnection& connection) { return !connection.socket; });
    for (std::size_t i = 0; free == pending_.end() && i < pending_.size(); ++i) {
        last_evicted_ = (last_evicted_ + 1) % pending_.size();
        if (!pending_[last_evicted_].peer) {
            close(pending_[last_evicted_]);
            free = pending_.begin() + static_cast<std::ptrdiff_t>(last_evicted_);
        }
    }
    const auto number = static_cast<std::uint64_t>(free - pending_.begin());
    if (free == pending_.end() || !watch(epoll_.get(), socket.get(), events, number)) {
        return nullptr;
    }
    free->socket = std::move(socket);
    free->peer = peer;
    return &*free;
}

void TcpConnector::watch_listener(bool is_watched) {
    epoll_event event{};
    event.events = is_watched ? std::uint32_t{EPOLLIN} : 0;
    event.data.u64 = kListener;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), &event);
    is_listener_paused_ = !is_watched;
}

/// Closes a connection. The unit to which it was to connect is marked as unreachable.
void TcpConnector::close(PendingConnection& connection) {
    if (ExpectedPeer* const unit = connection.peer ? expected_peer(*connection.peer) : nullptr) {
        unit->is_unreachable = true;
    }
    connection = PendingConnection{};
    if (is_listener_paused_) {
        watch_listener(true);
    }
}

TcpConnector::ExpectedPeer* TcpConnector::expected_peer(UnitIndex unit) {
    const auto found = std::ranges::find(expected_, unit, &ExpectedPeer::unit);
    return found == expected_.end() || found->is_connected ? nullptr : &*found;
}

bool TcpConnector::identify(const PendingConnection& connection, Envelope::Kind kind,
                            UnitIndex to) const {
    std::array<std::byte, sizeof(Envelope) + sizeof(std::uint64_t)> bytes;
    const Envelope envelope = sealer_.seal(kind, to, sizeof arena_);
    std::memcpy(bytes.data(), &envelope, sizeof envelope);
    std::memcpy(bytes.data() + sizeof envelope, &arena_, sizeof arena_);
    // The send buffer of a new connection has space for this message.
    return ::send(connection.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
}

void TcpConnector::on_event(PendingConnection& connection, TransportCounters& counters) {
    if (!connection.socket) {
        return;  // closed meanwhile
    }
    if (connection.peer && !connection.has_sent_hello) {
        connection.has_sent_hello = identify(connection, Envelope::Kind::hello, *connection.peer);
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = static_cast<std::uint64_t>(&connection - pending_.data());
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.socket.get(), &event);
        if (!connection.has_sent_hello) {
            close(connection);  // no listener there
        }
        return;
    }
    const auto room = std::span(connection.received).subspan(connection.bytes);
    const ssize_t count = ::recv(connection.socket.get(), room.data(), room.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (count <= 0) {
        // The peer has refused this unit and counted the refusal, or is gone.
        counters.refused_strangers += connection.peer ? 0 : 1;
        return close(connection);
    }
    connection.bytes += static_cast<std::size_t>(count);
    if (connection.bytes == connection.received.size()) {
        on_identification(connection, counters);
    }
}

/// Handles a hello or answer that has arrived completely.
void TcpConnector::on_identification(PendingConnection& connection, TransportCounters& counters) {
    const Sealer::Contents opened = sealer_.open(connection.received);
    ExpectedPeer* unit =
        opened.verdict == Sealer::Verdict::ours ? expected_peer(opened.from) : nullptr;
    const auto kind = connection.peer ? Envelope::Kind::answer : Envelope::Kind::hello;
    if (unit != nullptr && opened.kind == kind && opened.incarnation == unit->incarnation &&
        (connection.peer ? *connection.peer == opened.from : opened.from > self_) &&
        (connection.peer || identify(connection, Envelope::Kind::answer, opened.from))) {
        unit->is_connected = true;
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection.socket.get(), nullptr);
        ConnectedUnit connected{.unit = opened.from, .socket = std::move(connection.socket)};
        std::memcpy(&connected.arena, opened.message.data(), sizeof connected.arena);
        connected_.push_back(std::move(connected));
        return close(connection);
    }
    ++Sealer::counter_of(opened.verdict, counters);
    if (opened.verdict == Sealer::Verdict::other_epoch) {
        Envelope theirs;
        std::memcpy(&theirs, connection.received.data(), sizeof theirs);
        static_cast<void>(identify(connection, Envelope::Kind::answer, theirs.from));
    }
    close(connection);
}

}  // namespace daqloom::live
