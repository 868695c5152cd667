#include "softswitch/io/dpdk_exchange.hpp"

#include <fmt/format.h>
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_ring_elem.h>

#include <utility>

namespace daqloom::softswitch::io {

/// `rte_ring_create_elem`, which DPDK 24.11 declares as a function of C++, under its name in C.
rte_ring* create_ring(const char* name, unsigned element_bytes, unsigned elements, int numa_node,
                      unsigned flags) __asm__("rte_ring_create_elem");

base::expected<Exchange> Exchange::make(std::uint32_t cores, std::uint32_t messages) {
    Exchange made(cores);
    const std::uint64_t unique = rte_rdtsc() & 0xffff;
    for (std::uint32_t number = 0; number < cores * cores; ++number) {
        if (number / cores == number % cores) {  // no ring from a core to itself
            made.rings_.push_back(nullptr);
            continue;
        }
        const std::string name = fmt::format("cores{}-{}", unique, number);
        rte_ring* ring =
            create_ring(name.c_str(), sizeof(Message), messages, static_cast<int>(rte_socket_id()),
                        RING_F_SP_ENQ | RING_F_SC_DEQ);
        DAQLOOM_REFUSE_IF(ring == nullptr,
                          "the rings between {} cores: {}; give fewer cores, or "
                          "more memory to DPDK (-m, in MB)",
                          cores, rte_strerror(rte_errno));
        made.rings_.push_back(ring);
    }
    return made;
}

Exchange::Exchange(Exchange&& other) noexcept
    : cores_(other.cores_), rings_(std::exchange(other.rings_, {})) {}

Exchange::~Exchange() {
    for (rte_ring* ring : rings_) {
        rte_ring_free(ring);
    }
}

std::size_t Exchange::put(std::uint32_t from, std::uint32_t to, std::span<const Message> messages) {
    return rte_ring_sp_enqueue_burst_elem(ring(from, to), messages.data(), sizeof(Message),
                                          static_cast<unsigned>(messages.size()), nullptr);
}

std::size_t Exchange::take(std::uint32_t from, std::uint32_t to, std::span<Message> messages) {
    return rte_ring_sc_dequeue_burst_elem(ring(from, to), messages.data(), sizeof(Message),
                                          static_cast<unsigned>(messages.size()), nullptr);
}

std::size_t Exchange::waiting(std::uint32_t from, std::uint32_t to) const {
    return rte_ring_count(ring(from, to));
}

}  // namespace daqloom::softswitch::io
