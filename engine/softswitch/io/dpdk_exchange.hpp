// What the cores of a switch tell one another: a ring in memory from each to each other one.
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
    /// `messages`: that each ring holds, less one; a power of two.
    static base::expected<Exchange> make(std::uint32_t cores, std::uint32_t messages = 4096);
    Exchange(Exchange&& other) noexcept;
    Exchange& operator=(Exchange&&) = delete;
    ~Exchange();

    /// Returns how many of the messages there was room for. From one thread for each `from`.
    std::size_t put(std::uint32_t from, std::uint32_t to, std::span<const Message> messages);
    /// Returns how many there were. From one thread for each `to`.
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
