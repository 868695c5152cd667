// The transport for units of one machine: a write is a copy into the other unit's mapped arena, a
// message passes through a ring in shared memory.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/expected.hpp"
#include "live/memory/doorbell.hpp"
#include "live/memory/handover.hpp"
#include "live/memory/polling.hpp"
#include "live/memory/shared_memory.hpp"
#include "live/transport/shm/connector.hpp"
#include "live/transport/shm/message_ring.hpp"
#include "live/transport/transport.hpp"

namespace daqloom::live {

struct ShmConfig {
    std::size_t ring_bytes = 65'536;  ///< for messages from one unit to another; a power of two
    std::uint32_t writes = 1024;      ///< limit on writes under way to one unit
};

/// The transport over shared memory. `poll` copies writes, in order for each unit, to other units
/// and to this one alike. A unit that waits or polls detects a dead unit within some 20 ms.
class ShmTransport final : public Transport {
  public:
    /// Fails without a doorbell, for a ring too small for the largest message, or without a socket.
    static base::expected<std::unique_ptr<ShmTransport>> create(const TransportConfig& config,
                                                                const ShmConfig& shm = {});
    ~ShmTransport() override;

    [[nodiscard]] std::vector<std::byte> address() const override;
    [[nodiscard]] base::expected<std::vector<UnitIndex>> connect(std::span<const Peer> peers,
                                                                 base::Time until) override;
    [[nodiscard]] bool send(UnitIndex to, std::span<const std::byte> bytes) override;
    [[nodiscard]] bool write(const Write& write) override;
    bool poll(TransportEvents& events) override;
    void wait(base::Time until) override;
    [[nodiscard]] const TransportCounters& counters() const override { return counters_; }

    /// For a caller that sleeps in another way: rings due doorbells, and returns the time of the
    /// next call, after which a dead unit is detected.
    base::Time prepare_wait();
    /// Whether a poll has nothing to do. What changes that rings the doorbell.
    [[nodiscard]] bool is_quiet() const;

  private:
    struct Unit;

    ShmTransport(const TransportConfig& config, const ShmConfig& shm, std::string name,
                 HandoverListener listener, OwnedFd sockets);

    [[nodiscard]] Unit* reachable(UnitIndex unit);
    [[nodiscard]] bool put(Unit& unit, std::uint32_t kind, std::span<const std::byte> bytes);
    void lose(Unit& unit);
    void refuse(Unit& unit);
    void ring(Unit& unit);
    void ring_due();

    bool receive(Unit& unit, TransportEvents& events);
    bool copy_some(TransportEvents& events);
    bool copy_some(Unit& unit, base::Bytes& budget, TransportEvents& events);
    void poll_sockets();

    TransportConfig config_;
    ShmConfig shm_;
    std::string name_;
    HandoverListener listener_;
    OwnedFd sockets_;  ///< epoll(7) on the listener and the ends of all peers
    SharedMemory own_ring_;
    std::vector<std::unique_ptr<Unit>> units_;  ///< units connected
    base::Table<UnitIndex, Unit*> by_index_;
    std::size_t turn_ = 0;  ///< index in `units_` of the unit whose writes are copied
    std::size_t writes_under_way_ = 0;
    std::vector<UnitIndex> lost_;  ///< not yet reported
    bool bells_due_ = false;
    base::Time next_look_;
    Polling polling_;
    std::uint64_t polls_ = 0;
    TransportCounters counters_;
};

}  // namespace daqloom::live
