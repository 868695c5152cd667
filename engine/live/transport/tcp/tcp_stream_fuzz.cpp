// libFuzzer: data of another process over a connection: records with any headers, cut into parts by
// the input. Every other header gets its checksum and number, so that its content is validated.

#include "base/fuzz_test.hpp"
#include "live/transport/tcp/stream.hpp"

namespace {

struct Notifications {
    void on_message(std::span<const std::byte> bytes) {
        daqloom::base::require(bytes.size() <= daqloom::live::Transport::most_message);
        for (const std::byte byte : bytes) {
            sum += std::to_integer<unsigned>(byte);
        }
    }
    void on_write(std::uint32_t immediate) { sum += immediate; }
    void on_damaged_write() { ++sum; }
    bool on_acknowledged(std::uint32_t count) { return count < 100; }
    bool on_refused_write() { return sum % 2 == 0; }
    [[nodiscard]] bool is_over() const { return sum == 1; }

    unsigned sum = 0;
};

/// The input as successive records. Records with an odd first byte keep their header.
std::vector<std::byte> records(std::span<const std::byte> input) {
    using daqloom::live::RecordHeader;
    std::vector<std::byte> made;
    for (std::uint64_t number = 0; input.size() > sizeof(RecordHeader); ++number) {
        RecordHeader header;
        std::memcpy(&header, input.data() + 1, sizeof header);
        const auto rest = input.subspan(1 + sizeof header);
        const auto content = rest.first(std::min<std::size_t>(header.length, rest.size()));
        if (std::to_integer<unsigned>(input[0]) % 2 == 0) {
            header.number = number;
            header.content = daqloom::base::crc32c(content);
            header.seal();
        }
        const auto front = std::as_bytes(std::span(&header, 1));
        made.insert(made.end(), front.begin(), front.end());
        made.insert(made.end(), content.begin(), content.end());
        input = rest.subspan(content.size());
    }
    return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace daqloom::live;
    std::array<std::byte, 300> arena{};
    IncomingStream in(arena, true);
    Notifications notifications;
    const auto all = records(std::as_bytes(std::span(data, size)));
    for (std::span<const std::byte> rest = all; !rest.empty();) {
        const std::size_t part =
            std::min<std::size_t>(rest.size(), 1 + std::to_integer<std::size_t>(rest[0]));
        const auto bytes = rest.first(part);
        const std::size_t in_place = std::min(in.place().size(), bytes.size());
        if (in_place > 0) {
            std::memcpy(in.place().data(), bytes.data(), in_place);
        }
        if (!in.take(in_place, bytes.subspan(in_place), notifications)) {
            break;
        }
        rest = rest.subspan(part);
    }
    return 0;
}
