#include "protocol/data/pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "protocol/data/little_endian.hpp"

namespace daqloom::protocol {

namespace {

constexpr std::uint64_t step = pattern_step;
constexpr std::size_t word_bytes = sizeof(std::uint64_t);
constexpr std::size_t sizes_in_table = std::size_t{1} << 16;

/// Number of equal bytes before the first different one, from the XOR of two words.
std::size_t equal_bytes(std::uint64_t difference) {
    return static_cast<std::size_t>(std::countr_zero(difference)) / 8;
}

/// The last 8 bytes of a payload whose end is `rest` bytes (1 to 7) into the word after `last`.
std::uint64_t across(std::uint64_t last, std::size_t rest) {
    return last >> 8 * rest | (last + step) << (64 - 8 * rest);
}

/// Bytes of a payload shorter than a word.
std::uint64_t short_word(std::span<const std::uint8_t> payload) {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < payload.size(); ++i) {
        word |= std::uint64_t{payload[i]} << 8 * i;
    }
    return word;
}

std::uint64_t low_bytes(std::uint64_t word, std::size_t bytes) {
    return word & ((std::uint64_t{1} << 8 * bytes) - 1);
}

std::size_t first_difference(std::uint64_t word, std::span<const std::uint8_t> payload) {
    std::size_t at = 0;
    for (; at + word_bytes <= payload.size(); at += word_bytes, word += step) {
        if (const auto there = number_at<std::uint64_t>(payload, at); there != word) {
            return at + equal_bytes(there ^ word);
        }
    }
    const auto rest = payload.subspan(at);
    const std::uint64_t difference = short_word(rest) ^ low_bytes(word, rest.size());
    return std::min(payload.size(), at + equal_bytes(difference));
}

}  // namespace

void fill_pattern(std::uint16_t source_id, std::uint64_t event, std::span<std::uint8_t> payload) {
    const std::uint64_t first = pattern_hash(source_id, event);
    const std::size_t words = payload.size() / word_bytes;
    const std::size_t rest = payload.size() % word_bytes;
    for (std::size_t i = 0; i < words; ++i) {
        put_number<std::uint64_t>(payload, i * word_bytes, first + step * i);
    }
    if (rest != 0 && words > 0) {
        put_number<std::uint64_t>(payload, payload.size() - word_bytes,
                                  across(first + step * (words - 1), rest));
    } else {
        for (std::size_t i = 0; i < rest; ++i) {
            payload[i] = static_cast<std::uint8_t>(first >> 8 * i);
        }
    }
}

std::size_t check_pattern(std::uint16_t source_id, std::uint64_t event,
                          std::span<const std::uint8_t> payload) {
    const std::uint64_t first = pattern_hash(source_id, event);
    const std::size_t words = payload.size() / word_bytes;
    const std::size_t rest = payload.size() % word_bytes;
    std::uint64_t difference = 0;
    for (std::size_t i = 0; i < words; ++i) {
        difference |= number_at<std::uint64_t>(payload, i * word_bytes) ^ (first + step * i);
    }
    if (rest != 0 && words > 0) {
        difference |= number_at<std::uint64_t>(payload, payload.size() - word_bytes) ^
                      across(first + step * (words - 1), rest);
    } else if (rest != 0) {
        difference = short_word(payload) ^ low_bytes(first, rest);
    }
    return difference == 0 ? payload.size() : first_difference(first, payload);
}

PatternSizes::PatternSizes(FragmentSizes kind, base::Bytes mean, std::uint64_t seed)
    : table_(sizes_in_table) {
    base::RandomStream random(seed, "sizes of generated fragments");
    const bool is_random = kind == FragmentSizes::poisson && mean > 0;
    for (std::uint16_t& size : table_) {
        const base::Bytes bytes = is_random ? random.poisson(static_cast<double>(mean)) : mean;
        size = static_cast<std::uint16_t>(std::min(bytes, largest_fragment));
    }
    largest_ = *std::ranges::max_element(table_);
}

base::expected<PatternSizes> PatternSizes::of_events(const EventSizeConfig& events,
                                                     const FragmentShares& shares,
                                                     ReadoutIndex readout, std::uint32_t pieces,
                                                     std::uint64_t seed) {
    DAQLOOM_TRY(drawn, EventSizes::make(events, base::RandomStream(seed, "sizes")));
    PatternSizes sizes;
    sizes.is_in_order_ = true;
    do {
        const base::Bytes fragment = shares.fragment(drawn.next(), readout);
        for (std::uint32_t piece = 0; piece < pieces; ++piece) {
            const base::Bytes bytes = fragment_size(fragment, ReadoutIndex(piece), pieces);
            DAQLOOM_REFUSE_IF(bytes > largest_fragment,
                              "a fragment of {} bytes in {} pieces; give pieces of at most {}",
                              fragment, pieces, largest_fragment);
            sizes.table_.push_back(static_cast<std::uint16_t>(bytes));
        }
    } while (sizes.table_.size() + pieces <= sizes_in_table);
    sizes.largest_ = *std::ranges::max_element(sizes.table_);
    return sizes;
}

base::expected<base::Bytes> largest_event(const EventSizeConfig& events, std::uint64_t seed) {
    DAQLOOM_TRY(drawn, EventSizes::make(events, base::RandomStream(seed, "sizes")));
    base::Bytes largest = 0;
    for (std::size_t i = 0; i < sizes_in_table; ++i) {
        largest = std::max(largest, drawn.next());
    }
    return largest;
}

}  // namespace daqloom::protocol
