#include "base/codec.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace daqloom::base {

namespace {

/// Smallest code point of a character by its number of bytes after the first: smaller ones have a
/// shorter spelling.
constexpr std::array<std::uint32_t, 4> smallest_point = {0, 0x80, 0x800, 0x10000};

/// Bytes of the character at the front of a text; 0 if it is not UTF-8 or a control character.
std::size_t character_bytes(std::string_view text) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    const int ones = std::countl_one(byte(0));
    const auto more = static_cast<std::size_t>(std::max(ones - 1, 0));
    if (ones == 1 || more >= smallest_point.size() || more >= text.size()) {
        return 0;
    }
    std::uint32_t point = ones == 0 ? byte(0) : byte(0) & (0x3fU >> more);
    for (std::size_t at = 1; at <= more; ++at) {
        if (std::countl_one(byte(at)) != 1) {
            return 0;
        }
        point = point << 6U | (byte(at) & 0x3fU);
    }
    const bool is_control = point < 0x20 || (point >= 0x7f && point < 0xa0);
    const bool is_half = point >= 0xd800 && point <= 0xdfff;  // of a pair, in UTF-16
    const bool is_sound = point >= smallest_point[more] && point <= 0x10ffff;
    return is_sound && !is_half && !is_control ? more + 1 : 0;
}

}  // namespace

std::string printable(std::string_view text, std::size_t most_bytes) {
    std::string found;
    while (!text.empty()) {
        const std::size_t bytes = character_bytes(text);
        const std::size_t taken = std::max<std::size_t>(bytes, 1);
        if (found.size() + taken > most_bytes) {
            break;
        }
        found += bytes == 0 ? "?" : text.substr(0, bytes);
        text.remove_prefix(taken);
    }
    return found;
}

namespace codec {

void Coder::append(const void* from, std::size_t size) {
    out_.append(static_cast<const char*>(from), size);
}

void Coder::fail() {
    is_sound_ = false;
    rest_ = {};
}

std::span<const std::byte> Coder::take(std::size_t size) {
    if (size > rest_.size()) {
        fail();
        return {};
    }
    const auto found = rest_.first(size);
    rest_ = rest_.subspan(size);
    return found;
}

void Coder::number(std::uint64_t& code, std::uint64_t most) {
    if (!reads_) {
        std::uint64_t rest = code;
        for (; rest >= 128; rest /= 128) {
            out_ += static_cast<char>(rest % 128 + 128);
        }
        out_ += static_cast<char>(rest);
        return;
    }
    code = 0;
    bool ends = false;
    for (unsigned shift = 0; shift < 63 && is_sound_ && !ends; shift += 7) {
        if (const auto next = take(1); !next.empty()) {
            code |= (static_cast<std::uint64_t>(next[0]) & 127U) << shift;
            ends = static_cast<unsigned>(next[0]) < 128;
        }
    }
    if (!ends || code > most) {
        code = 0;
        fail();
    }
}

void Coder::fraction(double& value) {
    if (!reads_) {
        append(&value, sizeof value);
        return;
    }
    const auto found = take(sizeof value);
    std::memcpy(&value, found.data(), found.size());
    if (found.empty() || !std::isfinite(value) || value < 0) {
        value = 0;
        fail();
    }
}

/// Passes so many bytes behind their number; returns those that were read.
std::span<const std::byte> Coder::sized(const void* from, std::size_t size) {
    std::uint64_t count = size;
    number(count, limits_.text);
    if (reads_) {
        return take(count);
    }
    append(from, size);
    return {};
}

void Coder::text(std::string& value) {
    if (const auto found = sized(value.data(), value.size()); reads_) {
        value.assign(reinterpret_cast<const char*>(found.data()), found.size());
        if (printable(value, value.size()) != value) {
            value.clear();
            fail();
        }
    }
}

void Coder::bytes(Bytes& value) {
    if (const auto found = sized(value.data(), value.size()); reads_) {
        value.assign(found.begin(), found.end());
    }
}

expected<void> Coder::outcome() const {
    if (!is_sound_) {
        return failure(fmt::format("its field {} is cut short or out of range", field_));
    }
    if (!rest_.empty()) {
        return failure(fmt::format("it has {} bytes behind its last field", rest_.size()));
    }
    return {};
}

}  // namespace codec

}  // namespace daqloom::base
