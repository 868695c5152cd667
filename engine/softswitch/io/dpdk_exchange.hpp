// Messages between the cores of a switch: one ring in memory for each ordered pair of cores.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/expected.hpp"
#include "softswitch/packet.hpp"

struct rte_ring;

namespace daqloom::softswitch::io {

class Exchange {
  public:
    /// `messages`: capacity of each ring plus 1; must be a power of two.
    static base::expected<Exchange> make(std::uint32_t cores, std::uint32_t messages = 4096);
    Exchange(Exchange&& other) noexcept;
    Exchange& operator=(Exchange&&) = delete;
    ~Exchange();

    /// Returns the number of messages that fit. Only one thread may call it for each `from`.
    std::size_t put(std::uint32_t from, std::uint32_t to, std::span<const Message> messages);
    /// Returns the number of messages taken. Only one thread may call it for each `to`.
    std::size_t take(std::uint32_t from, std::uint32_t to, std::span<Message> messages);
    [[nodiscard]] std::size_t waiting(std::uint32_t from, std::uint32_t to) const;

  private:
    explicit Exchange(std::uint32_t cores) : cores_(cores) {}
    [[nodiscard]] rte_ring* ring(std::uint32_t from, std::uint32_t to) const {
        return rings_[from * cores_ + to];
    }

    std::uint32_t cores_;
    std::vector<rte_ring*> rings_;
};

}  // namespace daqloom::softswitch::io
