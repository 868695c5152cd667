#include "protocol/run/accounts/named_counters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "protocol/run/accounts/saturating_sum.hpp"

namespace daqloom::protocol {

namespace {

constexpr int most_errors = 256;

/// The number of the system error with this name; most_errors if there is none.
int error_of(std::string_view name) {
    for (int error = 1; error < most_errors; ++error) {
        const char* const known = ::strerrorname_np(error);
        if (known != nullptr && name == known) {
            return error;
        }
    }
    return most_errors;
}

}  // namespace

std::int64_t NamedCounters::count(std::string_view name) const {
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
        return 0;
    }
    const auto* const whole = std::get_if<std::int64_t>(&found->second);
    return whole != nullptr ? *whole : saturating_whole(std::get<double>(found->second));
}

double NamedCounters::number(std::string_view name) const {
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
        return 0;
    }
    return std::visit([](auto value) { return static_cast<double>(value); }, found->second);
}

std::string NamedCounters::causes_of_loss() const {
    std::vector<std::pair<int, std::string>> causes;
    for (const auto& [name, value] : by_name) {
        if (name.starts_with(counter_names::not_written) && count(name) != 0) {
            std::string cause = name.substr(std::strlen(counter_names::not_written));
            const int error = error_of(cause);
            causes.emplace_back(error,
                                error < most_errors ? ::strerrordesc_np(error) : std::move(cause));
        }
    }
    std::ranges::sort(causes);
    std::string text;
    for (const auto& [error, words] : causes) {
        text += text.empty() ? words : " and " + words;
    }
    return text.empty() ? "unknown cause" : text;
}

}  // namespace daqloom::protocol
