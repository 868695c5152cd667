// libFuzzer: a ring's reader, whose memory another process fills arbitrarily. The input is copied
// to the memory repeatedly, each time after the reader has read as much as possible.
#include <algorithm>
#include <cstring>
#include <memory>

#include "base/fuzz_test.hpp"
#include "live/transport/shm/message_ring.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace daqloom::live;
    constexpr std::size_t kCapacity = 256;
    constexpr std::size_t kMost = 100;
    constexpr auto kMemory = static_cast<std::size_t>(message_ring_bytes(kCapacity));

    struct alignas(64) Memory {
        std::byte bytes[kMemory] = {};
    };
    const auto memory = std::make_unique<Memory>();
    auto& header = *reinterpret_cast<MessageRingHeader*>(memory->bytes);
    MessageRingReader reader(memory->bytes, kMost);
    std::uint64_t read = 0;
    while (size >= sizeof(std::uint64_t)) {
        std::uint64_t written = 0;
        std::memcpy(&written, data, sizeof written);
        data += sizeof written;
        size -= sizeof written;
        const std::size_t records = std::min(size, kCapacity);
        std::memcpy(memory->bytes + sizeof(MessageRingHeader), data, records);
        data += records;
        size -= records;
        header.written = written;

        MessageRingReader::Record record;
        MessageRingReader::Got got{};
        while ((got = reader.next(record)) == MessageRingReader::Got::record) {
            read += 8 + (record.bytes.size() + 7) / 8 * 8;
            daqloom::base::require(record.bytes.size() <= kMost && read <= written);
        }
        if (got == MessageRingReader::Got::broken) {
            break;
        }
        static_cast<void>(reader.release());
        daqloom::base::require(header.read == read);
    }
    return 0;
}
