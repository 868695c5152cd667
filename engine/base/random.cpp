#include "base/random.hpp"

#include <vector>

namespace daqloom::base {

namespace {

std::mt19937_64 seeded_generator(std::uint64_t seed, std::string_view name) {
    std::vector<std::uint32_t> words{static_cast<std::uint32_t>(seed),
                                     static_cast<std::uint32_t>(seed >> 32)};
    for (const char c : name) {
        words.push_back(static_cast<unsigned char>(c));
    }
    std::seed_seq sequence(words.begin(), words.end());
    return std::mt19937_64(sequence);
}

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, std::string_view name)
    : generator_(seeded_generator(seed, name)) {}

}  // namespace daqloom::base
