// SipHash-2-4: a 64-bit digest of a short text that only holders of a 128-bit key can make.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace daqloom::live {

/// Defined by J.-P. Aumasson and D. J. Bernstein ("SipHash: a fast short-input PRF", 2012).
class SipHash {
  public:
    explicit SipHash(const std::array<std::byte, 16>& key) {
        std::memcpy(&key_0_, key.data(), 8);
        std::memcpy(&key_1_, key.data() + 8, 8);
    }

    [[nodiscard]] std::uint64_t operator()(std::span<const std::byte> text) const {
        State state{key_0_ ^ 0x736f6d6570736575, key_1_ ^ 0x646f72616e646f6d,
                    key_0_ ^ 0x6c7967656e657261, key_1_ ^ 0x7465646279746573};
        std::uint64_t last = std::uint64_t{text.size()} << 56;
        for (; text.size() >= 8; text = text.subspan(8)) {
            std::uint64_t word = 0;
            std::memcpy(&word, text.data(), 8);
            state.absorb(word);
        }
        for (std::size_t i = 0; i < text.size(); ++i) {
            last |= std::to_integer<std::uint64_t>(text[i]) << 8 * i;
        }
        state.absorb(last);
        state.v2 ^= 0xff;
        for (int i = 0; i < 4; ++i) {
            state.round();
        }
        return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
    }

  private:
    static_assert(std::endian::native == std::endian::little);

    struct State {
        std::uint64_t v0, v1, v2, v3;

        void round() {
            v0 += v1;
            v1 = std::rotl(v1, 13) ^ v0;
            v0 = std::rotl(v0, 32);
            v2 += v3;
            v3 = std::rotl(v3, 16) ^ v2;
            v0 += v3;
            v3 = std::rotl(v3, 21) ^ v0;
            v2 += v1;
            v1 = std::rotl(v1, 17) ^ v2;
            v2 = std::rotl(v2, 32);
        }
        void absorb(std::uint64_t word) {
            v3 ^= word;
            round();
            round();
            v0 ^= word;
        }
    };

    std::uint64_t key_0_ = 0;
    std::uint64_t key_1_ = 0;
};

}  // namespace daqloom::live
