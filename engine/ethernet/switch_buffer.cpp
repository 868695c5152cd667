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
      port_limit_(or_unlimited(config.port_limit)),
      memory_({.buffer = config.buffer,
               .dedicated = config.dedicated,
               .dedicated_ports = config.dedicated_ports,
               .alpha = config.alpha,
               .port_limit = config.port_limit,
               .cell_size = config.cell_size,
               .cell_metadata = config.cell_metadata},
              ports) {}

}  // namespace daqloom::ethernet
