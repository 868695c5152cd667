// What another process sends over a connection, cut into parts as the input says.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include "live/transport/tcp_stream.hpp"

namespace {

struct Told {
    void on_message(std::span<const std::byte> bytes) {
        if (bytes.size() > daqloom::live::Transport::most_message) {
            std::abort();
        }
        for (const std::byte byte : bytes) {
            sum += std::to_integer<unsigned>(byte);
        }
    }
    void on_write(std::uint32_t immediate) { sum += immediate; }
    bool on_acknowledged(std::uint32_t count) { return count < 100; }
    [[nodiscard]] bool is_over() const { return sum == 1; }

    unsigned sum = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace daqloom::live;
    std::array<std::byte, 300> arena{};
    IncomingStream in(arena);
    Told told;
    while (size > 0) {
        const std::size_t part = std::min<std::size_t>(size - 1, data[0]);
        const auto bytes = std::as_bytes(std::span(data + 1, part));
        const std::size_t in_place = std::min(in.place().size(), bytes.size());
        if (in_place > 0) {
            std::memcpy(in.place().data(), bytes.data(), in_place);
        }
        if (!in.take(in_place, bytes.subspan(in_place), told)) {
            break;
        }
        data += 1 + part;
        size -= 1 + part;
    }
    return 0;
}
