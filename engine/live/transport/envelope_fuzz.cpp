// libFuzzer: messages from a network with a known token, whose holder may send anything. The input
// is an envelope, whose seal is corrected if the first byte demands it, and its message.
#include <vector>

#include "base/fuzz_test.hpp"
#include "live/transport/envelope.hpp"
#include "live/transport/siphash.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace daqloom::live;
    using daqloom::base::require;
    constexpr Token token = {std::byte{42}};
    constexpr UnitIndex self(1);
    constexpr std::uint32_t units = 3;
    constexpr std::uint32_t epoch = 7;
    if (size == 0) {
        return 0;
    }
    const bool is_sealed = (data[0] & 1) != 0;
    const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
    std::vector<std::byte> received(bytes.begin(), bytes.end());
    if (is_sealed && received.size() >= sizeof(Envelope)) {
        const std::uint64_t seal =
            SipHash(token)(std::span(received).first(offsetof(Envelope, seal)));
        std::memcpy(received.data() + offsetof(Envelope, seal), &seal, sizeof seal);
    }
    const Sealer sealer(token, self, units, epoch, 99);
    const auto opened = sealer.open(received);
    if (opened.verdict != Sealer::Verdict::ours) {
        require(opened.message.empty());
        return 0;
    }
    // An accepted envelope equals, byte for byte, what its sender would have sealed.
    const Sealer sender(token, opened.from, units, epoch, opened.incarnation);
    const Envelope again = sender.seal(opened.kind, self, opened.message.size());
    require(opened.from.value() < units && opened.from != self);
    require(opened.message.size() <= Transport::most_message &&
            opened.message.size() + sizeof(Envelope) == received.size());
    require(std::memcmp(&again, received.data(), sizeof again) == 0);
    return 0;
}
