// Events that come while a unit still connects, because other units have connected before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "live/transport/transport.hpp"

namespace daqloom::live {

/// Keeps events until the first poll.
class Earlier final : public TransportEvents {
  public:
    void on_message(UnitIndex from, std::span<const std::byte> bytes) override {
        happened_.push_back({from, 0, {bytes.begin(), bytes.end()}, true});
    }
    void on_written(UnitIndex from, std::uint32_t immediate) override {
        happened_.push_back({from, immediate, {}, false});
    }
    void on_write_done(std::uint64_t) override {}
    void on_unreachable(UnitIndex) override {}

    bool replay(TransportEvents& events) {
        if (happened_.empty()) {
            return false;
        }
        for (const auto& one : std::exchange(happened_, {})) {
            if (one.is_message) {
                events.on_message(one.from, one.bytes);
            } else {
                events.on_written(one.from, one.immediate);
            }
        }
        return true;
    }
    [[nodiscard]] bool empty() const { return happened_.empty(); }
    [[nodiscard]] std::size_t size() const { return happened_.size(); }

  private:
    struct One {
        UnitIndex from;
        std::uint32_t immediate;
        std::vector<std::byte> bytes;
        bool is_message;
    };
    std::vector<One> happened_;
};

}  // namespace daqloom::live
