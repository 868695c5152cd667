// Structs of fields as bytes, for messages between processes of one version of this program.
//
// A message begins with a checksum of the names of all its fields, so that another version refuses
// it. Fields follow in their order: whole numbers in base 128, least significant digits first;
// fractions as they lie in memory; text, bytes and lists after their size; alternatives after their
// number. The bytes may come from anywhere: every size is compared with what is left before
// anything is allocated, every value has its range.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/crc32c.hpp"
#include "base/expected.hpp"
#include "base/index.hpp"
#include "base/units.hpp"

namespace daqloom::base {

/// Limits of a message that is decoded.
struct CodecLimits {
    std::size_t bytes;    ///< of the whole message
    std::size_t text;     ///< of a text or of bytes (B)
    std::size_t entries;  ///< of a list
};

/// The first bytes of a text, whole characters, with ? for what is not UTF-8 or a control
/// character: a terminal may print it.
std::string printable(std::string_view text, std::size_t most_bytes);

namespace codec {

using Bytes = std::vector<std::byte>;

template <class Value, template <class...> class Template>
inline constexpr bool is_of = false;
template <template <class...> class Template, class... Args>
inline constexpr bool is_of<Template<Args...>, Template> = true;
template <class Value>
inline constexpr bool has_fields = requires { Value::each([](auto&&...) {}); };
template <class Value>
inline constexpr bool is_index = requires { typename Value::number_type; };

/// Largest code of a number, an index or an entry of an enumeration, which has a function
/// last_value. The sum of two numbers with a sign has a code as well.
template <class Value>
constexpr std::uint64_t most() {
    if constexpr (std::is_enum_v<Value>) {
        return static_cast<std::uint64_t>(last_value(Value{}));
    } else if constexpr (is_index<Value>) {
        return std::numeric_limits<typename Value::number_type>::max();
    } else {
        constexpr std::uint64_t largest = std::uint64_t{1} << (std::is_signed_v<Value> ? 62U : 63U);
        return std::min<std::uint64_t>(std::numeric_limits<Value>::max(), largest - 1);
    }
}

/// The code of a value, or the closest one.
template <class Value>
std::uint64_t to_code(const Value& value) {
    if constexpr (is_index<Value>) {
        return value.value();
    } else if constexpr (std::is_signed_v<Value>) {
        return std::min(static_cast<std::uint64_t>(std::max<Value>(value, 0)), most<Value>());
    } else {
        return std::min(static_cast<std::uint64_t>(value), most<Value>());
    }
}

/// Writes or reads a message. After a value that is out of range, all that is read is empty.
class Coder {
  public:
    /// Writes.
    Coder() = default;
    /// Reads.
    Coder(std::span<const std::byte> message, const CodecLimits& limits)
        : reads_(true), rest_(message), limits_(limits) {}

    template <class Value>
    void pass(Value& value);
    /// The message that was written.
    std::string written() { return std::move(out_); }
    /// The error of the message that was read, if it has one.
    [[nodiscard]] expected<void> outcome() const;

  private:
    void number(std::uint64_t& code, std::uint64_t most);
    void fraction(double& value);
    void text(std::string& value);
    void bytes(Bytes& value);
    template <class Entries, class Each>
    void list(Entries& entries, Each each);
    template <class... Kinds>
    void alternative(std::variant<Kinds...>& value);
    void append(const void* from, std::size_t size);
    std::span<const std::byte> take(std::size_t size);
    std::span<const std::byte> sized(const void* from, std::size_t size);
    void fail();

    std::string out_;
    bool reads_ = false;
    std::span<const std::byte> rest_;
    CodecLimits limits_{};
    const char* field_ = "kind";
    bool is_sound_ = true;
};

template <class Entries, class Each>
void Coder::list(Entries& entries, Each each) {
    std::uint64_t count = entries.size();
    number(count, std::min(limits_.entries, rest_.size()));
    if (reads_) {
        entries.clear();
    }
    for (std::uint64_t place = 0; place < count && is_sound_; ++place) {
        if (reads_) {
            entries.emplace_back();
        }
        each(entries[place]);
    }
}

template <class... Kinds>
void Coder::alternative(std::variant<Kinds...>& value) {
    std::uint64_t kind = value.index();
    number(kind, sizeof...(Kinds) - 1);
    if (reads_) {
        std::uint64_t each = 0;
        ((each++ == kind ? void(value.template emplace<Kinds>()) : void()), ...);
    }
    std::visit([&](auto& its) { pass(its); }, value);
}

template <class Value>
void Coder::pass(Value& value) {
    if constexpr (has_fields<Value>) {
        Value::each([&](const char* name, auto member, const char*) {
            field_ = is_sound_ ? name : field_;
            pass(value.*member);
        });
    } else if constexpr (std::is_same_v<Value, Time>) {
        pass(value.ps);
    } else if constexpr (std::is_same_v<Value, std::string>) {
        text(value);
    } else if constexpr (std::is_same_v<Value, Bytes>) {
        bytes(value);
    } else if constexpr (std::is_floating_point_v<Value>) {
        fraction(value);
    } else if constexpr (is_of<Value, std::vector>) {
        list(value, [&](auto& entry) { pass(entry); });
    } else if constexpr (is_of<Value, std::map>) {
        std::vector<std::pair<typename Value::key_type, typename Value::mapped_type>> entries(
            value.begin(), value.end());
        list(entries, [&](auto& entry) {
            pass(entry.first);
            pass(entry.second);
        });
        value = Value(entries.begin(), entries.end());
    } else if constexpr (is_of<Value, std::optional>) {
        bool has_value = value.has_value();
        pass(has_value);
        if (has_value) {
            pass(value ? *value : value.emplace());
        }
    } else if constexpr (is_of<Value, std::variant>) {
        alternative(value);
    } else if constexpr (!std::is_empty_v<Value>) {
        std::uint64_t code = to_code(value);
        number(code, most<Value>());
        value = static_cast<Value>(code);
    }
}

/// The names of all fields, and the sizes of their numbers.
template <class Value>
void describe(std::string& out) {
    if constexpr (has_fields<Value>) {
        Value::each([&]<class Field, class Owner>(const char* name, Field Owner::*, const char*) {
            describe<Field>(out += name);
        });
    } else if constexpr (is_of<Value, std::variant>) {
        [&]<class... Kinds>(std::type_identity<std::variant<Kinds...>>) {
            (describe<Kinds>(out += '|'), ...);
        }(std::type_identity<Value>());
    } else if constexpr (is_of<Value, std::map>) {
        describe<typename Value::mapped_type>(out += '{');
    } else if constexpr (is_of<Value, std::vector> || is_of<Value, std::optional>) {
        describe<typename Value::value_type>(out += '[');
    } else {
        out += fmt::format(":{};", sizeof(Value));
    }
}

/// The first bytes of all messages with these fields.
template <class Value>
std::string checksum() {
    std::string described;
    describe<Value>(described);
    return fmt::format("{:08x}", crc32c(std::as_bytes(std::span(described))));
}

}  // namespace codec

/// The message with this value.
template <class Value>
std::string encode(Value value) {
    static const std::string checksum = codec::checksum<Value>();
    codec::Coder coder;
    coder.pass(value);
    return checksum + coder.written();
}

/// The value in a message, or the reason why there is none.
template <class Value>
expected<Value> decode(std::span<const std::byte> message, const CodecLimits& limits) {
    static const std::string checksum = codec::checksum<Value>();
    if (message.size() > limits.bytes) {
        return failure(
            fmt::format("it has {} bytes; send at most {}", message.size(), limits.bytes));
    }
    const auto expected_bytes = std::as_bytes(std::span(checksum));
    if (!std::ranges::equal(message.first(std::min(message.size(), checksum.size())),
                            expected_bytes)) {
        return failure("it is from another version or program; run one version on all machines");
    }
    codec::Coder coder(message.subspan(checksum.size()), limits);
    Value value;
    coder.pass(value);
    DAQLOOM_CHECK(coder.outcome());
    return value;
}

}  // namespace daqloom::base
