#include "live/transport/tcp/tcp.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "live/memory/clock.hpp"
#include "live/memory/epoll.hpp"

namespace daqloom::live {

namespace {

/// Limit on the bytes that one poll sends and receives over all connections, except for the excess
/// of one system call. A core is busy with this amount for some 400 µs. With less, two units on two
/// cores spend more time on system calls.
constexpr std::size_t kBytesPerPoll = 2 << 20;
/// Part of `kBytesPerPoll` for a single message, or for the destructor.
constexpr std::size_t kBytesAtOnce = 256 << 10;
/// Interval of reading the kernel's counts, which takes one system call per connection.
constexpr base::Time kTimePerCounts = base::milliseconds(50);
constexpr std::uint64_t kTcpPollsPerLook = 256;  ///< polls between two readings of the clock
constexpr std::uint64_t kConnector = ~std::uint64_t{0};

}  // namespace

/// Forwards the records of one connection to the unit's events.
struct TcpTransport::Receiving {
    TcpTransport& self;
    Connection& connection;
    TransportEvents& events;
    std::uint32_t written = 0;

    void on_message(std::span<const std::byte> bytes) {
        ++self.counters_.messages_received;
        events.on_message(connection.unit, bytes);
    }
    void on_write(std::uint32_t immediate) {
        ++written;
        ++self.counters_.writes_received;
        events.on_written(connection.unit, immediate);
    }
    void on_damaged_write() {
        ++self.counters_.damaged_writes;
        connection.out.acknowledge(std::exchange(written, 0));
        connection.out.refuse_write();
    }
    [[nodiscard]] bool on_refused_write() {
        ++self.counters_.writes_repeated;
        return connection.out.repeat_write();
    }
    [[nodiscard]] bool on_acknowledged(std::uint32_t writes) {
        for (; writes > 0; --writes) {
            OutgoingStream::Done done;
            if (!connection.out.pop_done(done)) {
                return false;
            }
            ++self.counters_.writes;
            self.counters_.written_bytes += done.bytes;
            events.on_write_done(done.context);
        }
        return true;
    }
    [[nodiscard]] bool is_over() const { return connection.is_lost; }
};

base::expected<std::unique_ptr<TcpTransport>> TcpTransport::create(const TransportConfig& config,
                                                                   const TcpConfig& tcp) {
    DAQLOOM_REFUSE_IF(config.doorbell == nullptr || config.self.value() >= config.units,
                      "unit {} of {} for TCP; expected a unit of the run, with a doorbell",
                      config.self.value(), config.units);
    DAQLOOM_CHECK(check(tcp, config.units));
    DAQLOOM_TRY(connector, TcpConnector::open(config, tcp));
    OwnedFd epoll(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll || !watch(epoll.get(), connector.fd(), EPOLLIN, kConnector)) {
        return base::system_failure(fmt::format("cannot watch sockets: {}", std::strerror(errno)));
    }
    return std::unique_ptr<TcpTransport>(
        new TcpTransport(config, tcp, std::move(connector), std::move(epoll)));
}

TcpTransport::TcpTransport(const TransportConfig& config, const TcpConfig& tcp,
                           TcpConnector connector, OwnedFd epoll)
    : config_(config),
      window_(tcp.window),
      has_checksums_(tcp.checksums),
      connector_(std::move(connector)),
      epoll_(std::move(epoll)),
      by_index_(config.units),
      loopback_(config.self, config.arena),
      behind_(kBehind) {
    lost_.reserve(config.units);
}

/// Sends queued data; data that the kernel has already taken still arrive.
TcpTransport::~TcpTransport() {
    for (const auto& connection : connections_) {
        if (!connection->is_lost) {
            send_some(*connection, kBytesAtOnce);
            ::shutdown(connection->socket.get(), SHUT_WR);
        }
    }
}

base::expected<std::vector<UnitIndex>> TcpTransport::connect(std::span<const Peer> peers,
                                                             base::Time until) {
    DAQLOOM_TRY(connected, connector_.connect(peers, until, counters_));
    const auto arena = config_.arena != nullptr ? config_.arena->bytes() : std::span<std::byte>();
    for (ConnectedUnit& unit : connected) {
        // Windows below two segments are not clamped: they close often, and a timer reopens them.
        const bool holds = window_ >= 2 * segment_bytes(unit.socket.get());
        connections_.push_back(std::make_unique<Connection>(
            Connection{.unit = unit.unit,
                       .socket = std::move(unit.socket),
                       .arena = unit.arena,
                       .window = holds ? window_ : 0,
                       .out = OutgoingStream(kMessageRoom, kWrites, has_checksums_),
                       .in = IncomingStream(arena, has_checksums_)}));
        Connection& made = *connections_.back();
        by_index_[made.unit] = &made;
        if (!watch(epoll_.get(), made.socket.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                   made.unit.value())) {
            return base::system_failure(
                fmt::format("cannot watch unit {}: {}", made.unit.value(), std::strerror(errno)));
        }
    }
    std::vector<UnitIndex> missing;
    for (const Peer& peer : peers) {
        const bool is_connected = by_index_.contains(peer.unit) && by_index_[peer.unit] != nullptr;
        if (!is_connected && peer.unit != config_.self) {
            missing.push_back(peer.unit);
        }
    }
    return missing;
}

/// The connection to a unit; none: the unit is unreachable, which is or will be reported.
TcpTransport::Connection* TcpTransport::reachable(UnitIndex unit) {
    Connection* const found = by_index_.contains(unit) ? by_index_[unit] : nullptr;
    return found == nullptr || found->is_lost ? nullptr : found;
}

void TcpTransport::lose(Connection& connection) {
    if (!connection.is_lost) {
        connection.is_lost = true;
        lost_.push_back(connection.unit);
        ::shutdown(connection.socket.get(), SHUT_RDWR);
    }
}

void TcpTransport::refuse(Connection& connection, Counter& cause) {
    ++cause;
    lose(connection);
}

bool TcpTransport::send(UnitIndex to, std::span<const std::byte> bytes) {
    if (bytes.size() > most_message) {
        return false;
    }
    if (to == config_.self) {
        return loopback_.send(bytes, counters_);
    }
    Connection* const connection = reachable(to);
    if (connection == nullptr) {
        return true;
    }
    if (!connection->out.put_message(bytes)) {
        send_some(*connection, kBytesAtOnce);
        if (!connection->is_lost && !connection->out.put_message(bytes)) {
            connection->starved = true;
            return false;
        }
    }
    ++counters_.messages_sent;
    send_some(*connection, kBytesAtOnce);
    return true;
}

bool TcpTransport::write(const Write& write) {
    if (write.to == config_.self) {
        return loopback_.write(write, counters_);
    }
    Connection* const connection = reachable(write.to);
    if (connection == nullptr) {
        return true;
    }
    if (!write.is_inside(connection->arena)) {
        refuse(*connection, counters_.refused_malformed);
        return true;
    }
    return connection->out.put_write(write);
}

/// Sends; returns the number of bytes sent.
std::size_t TcpTransport::send_some(Connection& connection, std::size_t most) {
    std::size_t sent = 0;
    while (connection.may_write && !connection.out.empty() && sent < most) {
        const std::span<iovec> parts = connection.out.gather();
        if (parts.empty()) {
            break;
        }
        msghdr message{};
        message.msg_iov = parts.data();
        message.msg_iovlen = parts.size();
        const ssize_t count =
            ::sendmsg(connection.socket.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count < 0) {
            if (errno == EAGAIN || errno == ENOBUFS) {
                connection.may_write = false;
            } else if (errno != EINTR) {
                connection.may_write = false;
                connection.may_read = true;  // earlier data of the other side are still read
            }
            break;
        }
        connection.out.on_sent(static_cast<std::size_t>(count));
        sent += static_cast<std::size_t>(count);
    }
    return sent;
}

/// Receives; returns the number of bytes received.
std::size_t TcpTransport::receive_some(Connection& connection, std::size_t most,
                                       TransportEvents& events) {
    Receiving receiving{*this, connection, events};
    std::size_t received = 0;
    if (connection.window != 0 && connection.may_read) {
        clamp_window(connection.socket.get(), connection.window);
    }
    while (connection.may_read && !connection.is_lost && received < most) {
        const std::span<std::byte> place = connection.in.place();
        std::array<iovec, 2> parts{
            {{place.data(), place.size()}, {behind_.data(), behind_.size()}}};
        msghdr message{};
        message.msg_iov = place.empty() ? &parts[1] : parts.data();
        message.msg_iovlen = place.empty() ? 1 : 2;
        const ssize_t count = ::recvmsg(connection.socket.get(), &message, MSG_DONTWAIT);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
            connection.may_read = errno == EINTR;
            break;
        }
        if (count <= 0) {  // the other side has hung up, or died
            lose(connection);
            break;
        }
        const auto bytes = static_cast<std::size_t>(count);
        const std::size_t in_place = std::min(bytes, place.size());
        received += bytes;
        if (!connection.in.take(in_place, std::span(behind_).first(bytes - in_place), receiving)) {
            refuse(connection, connection.in.is_damaged() ? counters_.damaged_records
                                                          : counters_.refused_malformed);
        }
    }
    connection.out.acknowledge(receiving.written);
    return received;
}

bool TcpTransport::poll(TransportEvents& events) {
    bool something = loopback_.poll(events, counters_);
    poll_sockets();
    std::size_t to_receive = kBytesPerPoll;
    std::size_t to_send = kBytesPerPoll;
    std::size_t looked_at = 0;
    for (; looked_at < connections_.size() && to_receive > 0 && to_send > 0; ++looked_at) {
        Connection& connection = *connections_[(turn_ + looked_at) % connections_.size()];
        if (connection.is_lost) {
            continue;
        }
        to_receive -= std::min(to_receive, receive_some(connection, to_receive, events));
        to_send -= connection.is_lost ? 0 : std::min(to_send, send_some(connection, to_send));
        if (connection.starved && connection.out.has_room()) {
            connection.starved = false;
            something = true;
        }
    }
    turn_ += looked_at;
    something |= to_receive < kBytesPerPoll || to_send < kBytesPerPoll;
    something |= report_lost(lost_, events);
    if (++polls_ % kTcpPollsPerLook == 0) {
        read_counts();
    }
    return something;
}

void TcpTransport::read_counts() {
    const base::Time time = now();
    if (time < read_counts_at_) {
        return;
    }
    read_counts_at_ = time + kTimePerCounts;
    const std::lock_guard lock(counts_mutex_);
    counts_.resize(connections_.size());
    for (std::size_t i = 0; i < connections_.size(); ++i) {
        const Connection& connection = *connections_[i];
        counts_[i].to = connection.unit;
        if (!connection.is_lost) {
            ConnectionCounts counted = counts_of(connection.socket.get());
            counted.to = connection.unit;
            counters_.segments_retransmitted +=
                counted.segments_retransmitted - counts_[i].segments_retransmitted;
            counters_.retransmission_timeouts +=
                counted.retransmission_timeouts - counts_[i].retransmission_timeouts;
            counts_[i] = counted;
        }
    }
}

std::vector<ConnectionCounts> TcpTransport::connections() const {
    const std::lock_guard lock(counts_mutex_);
    return counts_;
}

void TcpTransport::poll_sockets() {
    std::array<epoll_event, 64> came{};
    const int count = ::epoll_wait(epoll_.get(), came.data(), came.size(), 0);
    for (const epoll_event& event :
         std::span(came).first(static_cast<std::size_t>(std::max(count, 0)))) {
        if (event.data.u64 == kConnector) {
            connector_.refuse_late_connections(counters_);
            continue;
        }
        Connection& connection = *by_index_[UnitIndex(static_cast<std::uint32_t>(event.data.u64))];
        connection.may_read |= (event.events & ~std::uint32_t{EPOLLOUT}) != 0;
        connection.may_write |= (event.events & EPOLLOUT) != 0;
    }
}

bool TcpTransport::is_quiet() const {
    return loopback_.empty() && lost_.empty() &&
           std::ranges::none_of(connections_, [](const auto& connection) {
               return !connection->is_lost &&
                      (connection->may_read || (connection->may_write && !connection->out.empty()));
           });
}

void TcpTransport::wait(base::Time until) {
    for (const auto& connection : connections_) {
        if (!connection->is_lost) {
            send_some(*connection, kBytesAtOnce);
        }
    }
    read_counts();
    if (config_.waiting == Waiting::spinning) {
        return;
    }
    if (config_.waiting == Waiting::adaptive && polling_.length() > base::Time::zero()) {
        base::Time time = now();
        const base::Time end = std::min(until, time + polling_.length());
        bool is_there = !is_quiet();
        while (time < end && !is_there) {
            pause_a_little();
            poll_sockets();
            is_there = config_.doorbell->was_rung() || !is_quiet();
            time = now();
        }
        is_there ? polling_.on_found() : polling_.on_slept();
    } else {
        polling_.on_slept();
    }
    config_.doorbell->sleep_with(epoll_.get(), until, [this] {
        const bool quiet = is_quiet();
        counters_.sleeps += quiet ? 1 : 0;
        return quiet;
    });
}

}  // namespace daqloom::live
