#include "ethernet/switch_buffer.hpp"

#include <limits>

namespace daqloom::ethernet {

namespace {

template <class T>
T or_unlimited(T limit) {
    return limit == 0 ? std::numeric_limits<T>::max() / 2 : limit;
}

}  // namespace

SwitchBuffer::SwitchBuffer(const SwitchConfig& config, std::uint32_t ports)
    : config_(config),
      ports_(ports),
      buffer_(or_unlimited(config.buffer)),
      queue_frames_(or_unlimited(config.queue_packets)),
      port_limit_(or_unlimited(config.port_limit)) {
    if (config.model == BufferModel::shared_memory) {
        cell_bytes_ = config.cell_size == 0 ? 1 : config.cell_size;
        const std::uint32_t sharers = config.dedicated_ports == 0 ? ports : config.dedicated_ports;
        dedicated_ = config.dedicated / sharers / cell_bytes_;
        pool_ = (config.buffer - config.dedicated) / cell_bytes_;
        if (config.port_limit != 0) {
            port_limit_ = config.port_limit / cell_bytes_;
        }
    }
}

}  // namespace daqloom::ethernet
