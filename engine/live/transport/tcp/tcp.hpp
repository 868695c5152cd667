// The transport over TCP sockets: one connection for each pair of units, as in the applications of
// most data acquisition systems.
//
//   write ──> OutgoingStream ──> sendmsg(2) ══ TCP ══> recvmsg(2) ──> IncomingStream ──> arena
//
// Bytes of writes go from the source to the kernel, and from there to their final place, without
// another copy. A write is done when the other unit acknowledges it.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/expected.hpp"
#include "live/memory/polling.hpp"
#include "live/transport/loopback.hpp"
#include "live/transport/tcp/connector.hpp"
#include "live/transport/tcp/socket.hpp"
#include "live/transport/tcp/stream.hpp"
#include "live/transport/transport.hpp"

namespace daqloom::live {

class TcpTransport final : public Transport {
  public:
    /// Fails if the node has no such address, or if the kernel refuses a socket option.
    static base::expected<std::unique_ptr<TcpTransport>> create(const TransportConfig& config,
                                                                const TcpConfig& tcp);
    ~TcpTransport() override;

    [[nodiscard]] std::vector<std::byte> address() const override { return connector_.address(); }
    [[nodiscard]] base::expected<std::vector<UnitIndex>> connect(std::span<const Peer> peers,
                                                                 base::Time until) override;
    [[nodiscard]] bool send(UnitIndex to, std::span<const std::byte> bytes) override;
    [[nodiscard]] bool write(const Write& write) override;
    bool poll(TransportEvents& events) override;
    void wait(base::Time until) override;
    [[nodiscard]] const TransportCounters& counters() const override { return counters_; }
    [[nodiscard]] std::vector<ConnectionCounts> connections() const override;

  private:
    static constexpr std::size_t kMessageRoom = 128 << 10;  ///< bytes for each unit
    static constexpr std::uint32_t kWrites = 1024;  ///< limit on writes under way to one unit
    /// Limit on bytes that one system call reads behind a piece of a write; these are copied.
    static constexpr std::size_t kBehind = 8 << 10;

    struct Connection {
        UnitIndex unit{};
        OwnedFd socket;
        std::uint64_t arena = 0;  ///< size of the other side's arena
        base::Bytes window = 0;   ///< receive window to be clamped; 0: none
        OutgoingStream out;
        IncomingStream in;
        bool may_read = true;   ///< the kernel may have received data
        bool may_write = true;  ///< the kernel may have room
        bool starved = false;   ///< a message did not fit
        bool is_lost = false;
    };
    struct Receiving;

    TcpTransport(const TransportConfig& config, const TcpConfig& tcp, TcpConnector connector,
                 OwnedFd epoll);

    [[nodiscard]] Connection* reachable(UnitIndex unit);
    void lose(Connection& connection);
    void refuse(Connection& connection, Counter& cause);
    std::size_t send_some(Connection& connection, std::size_t most);
    std::size_t receive_some(Connection& connection, std::size_t most, TransportEvents& events);
    void poll_sockets();
    void read_counts();
    [[nodiscard]] bool is_quiet() const;

    TransportConfig config_;
    base::Bytes window_;  ///< see TcpConfig
    bool has_checksums_;
    TcpConnector connector_;
    OwnedFd epoll_;  ///< epoll(7) on all connections, edge-triggered, and the connector
    std::vector<std::unique_ptr<Connection>> connections_;
    base::Table<UnitIndex, Connection*> by_index_;
    Loopback loopback_;
    std::vector<std::byte> behind_;
    std::size_t turn_ = 0;         ///< index in `connections_` of the first one in the next poll
    std::vector<UnitIndex> lost_;  ///< not yet reported
    base::Time read_counts_at_;
    std::uint64_t polls_ = 0;
    Polling polling_;
    TransportCounters counters_;
    mutable std::mutex counts_mutex_;
    std::vector<ConnectionCounts> counts_;  ///< counts of each connection, as last read
};

}  // namespace daqloom::live
