#include "softswitch/output_queues.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace daqloom::softswitch {

using base::BitRate;
using base::Bytes;

namespace {

std::uint64_t packets_of(const OutputConfig& config) {
    return config.packets > 0
               ? config.packets
               : std::accumulate(
                     config.rings.begin(), config.rings.end(), std::uint64_t{0},
                     [](std::uint64_t sum, const RingConfig& ring) { return sum + ring.packets; });
}

}  // namespace

OutputQueues::OutputQueues(const OutputConfig& config)
    : overhead_(config.overhead),
      quantum_(config.quantum),
      memory_(packets_of(config), static_cast<std::uint32_t>(config.rings.size())),
      wheel_(static_cast<std::uint32_t>(config.rings.size()), config.slot),
      rings_(config.rings.size()),
      counters_(config.rings.size()),
      waits_(config.rings.size()),
      ports_(config.ports) {
    if (config.shared.buffer > 0) {
        shared_.emplace(config.shared, config.ports);
        limits_.resize(config.rings.size());
    }
    for (std::uint32_t number = 0; number < rings_.size(); ++number) {
        const RingConfig& given = config.rings[number];
        rings_[number].port = given.port.value();
        rings_[number].priority = given.priority;
        set_rate(RingIndex(number), given.rate);
        set_limits(RingIndex(number), given.packets, given.bytes);
        set_mark(RingIndex(number), given.mark_bytes);
        DueRings& due = ports_[given.port.value()].due[given.priority];
        due.numbers.resize(due.numbers.size() + 1);
    }
    for (Port& port : ports_) {
        for (DueRings& due : port.due) {
            due.numbers.resize(std::bit_ceil(due.numbers.size()));
            due.mask = static_cast<std::uint32_t>(due.numbers.size() - 1);
        }
    }
}

void OutputQueues::set_rate(RingIndex ring, BitRate rate) {
    constexpr std::int64_t ps_per_byte = 8'000'000'000'000;  // at 1 b/s
    const std::int64_t bps = std::max(rate.bps, kLeastPace.bps);
    rings_[ring.value()].ps_per_byte_q20 =
        rate.bps <= 0 ? 0
                      : ((ps_per_byte / bps) << 20) + (((ps_per_byte % bps) << 20) + bps / 2) / bps;
}

void OutputQueues::set_limits(RingIndex ring, std::uint32_t packets, Bytes bytes) {
    rings_[ring.value()].most_packets = shared_ ? 0 : packets;
    if (shared_) {
        limits_[ring.value()] = packets;
    }
    rings_[ring.value()].most_bytes =
        static_cast<std::uint32_t>(std::clamp(bytes, Bytes{0}, kMostRingBytes));
    RingCounters& counted = counters_[ring.value()];
    counted.peak_packets = std::min(counted.peak_packets, packets);
    counted.peak_bytes =
        std::min(counted.peak_bytes, std::uint64_t{rings_[ring.value()].most_bytes});
}

void OutputQueues::set_mark(RingIndex ring, Bytes bytes) {
    rings_[ring.value()].mark_bytes =
        bytes <= 0 ? ~std::uint32_t{0}
                   : static_cast<std::uint32_t>(std::min(bytes, kMostRingBytes));
}

void OutputQueues::forget_peaks() {
    shared_peak_bytes_ = shared_bytes_;
    for (std::size_t ring = 0; ring < rings_.size(); ++ring) {
        const std::uint32_t most = shared_ ? limits_[ring] : rings_[ring].most_packets;
        counters_[ring].peak_bytes = std::min(rings_[ring].bytes, rings_[ring].most_bytes);
        counters_[ring].peak_packets = std::min(rings_[ring].packets, most);
    }
}

}  // namespace daqloom::softswitch
