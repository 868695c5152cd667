// The ports of the switch: DPDK devices, each with one send queue and one or more receive queues,
// and the pool of their buffers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/expected.hpp"
#include "base/fields.hpp"
#include "base/units.hpp"

struct rte_mbuf;
struct rte_mempool;

namespace daqloom::softswitch::io {

struct DevicesConfig {
    DAQLOOM_FIELDS(DevicesConfig,
                   (std::vector<std::string>, names, "Device of each port, as DPDK names it."),
                   (std::uint16_t, descriptors,
                    "Descriptors of each queue: few, as frames wait in rings.", 512),
                   (std::uint32_t, buffers, "Buffers for frames in rings and queues.", 65'536),
                   (std::uint16_t, buffer_bytes, "Size of a buffer, for the largest frame.", 2048),
                   (std::uint16_t, receive_queues,
                    "Receive queues of each device, which spreads flows over them (RSS).", 1))
};

/// Counters of a device, from the start on.
struct DeviceCounters {
    DAQLOOM_FIELDS(DeviceCounters, (std::uint64_t, received, "Frames received."),
                   (std::uint64_t, received_bytes, "Bytes of the frames received."),
                   (std::uint64_t, sent, "Frames sent."),
                   (std::uint64_t, sent_bytes, "Bytes of the frames sent."),
                   (std::uint64_t, missed, "Frames not received: queue full."),
                   (std::uint64_t, errors, "Frames not received, or not sent, for other reasons."),
                   (std::uint64_t, no_buffers, "Frames not received: all buffers in use."),
                   (bool, is_up, "Whether the link is up."))
};

/// The destructor stops the devices; EAL must outlive them.
class Devices {
  public:
    static base::expected<Devices> open(const DevicesConfig& config);
    Devices(Devices&& other) noexcept;
    Devices& operator=(Devices&&) = delete;
    ~Devices();

    [[nodiscard]] std::size_t size() const { return ids_.size(); }
    /// Number of the device of a port in DPDK.
    [[nodiscard]] std::uint16_t id(std::size_t port) const { return ids_[port]; }
    [[nodiscard]] std::uint16_t receive_queues() const { return receive_queues_; }
    [[nodiscard]] rte_mempool* buffers() const { return pool_; }
    [[nodiscard]] DeviceCounters counters(std::size_t port) const;
    /// Whether the link of a port is up.
    [[nodiscard]] bool is_up(std::size_t port) const;

  private:
    Devices() = default;
    base::expected<void> start(const DevicesConfig& config, const std::string& name);

    rte_mempool* pool_ = nullptr;
    std::uint16_t receive_queues_ = 1;
    std::vector<std::uint16_t> ids_;
};

}  // namespace daqloom::softswitch::io
