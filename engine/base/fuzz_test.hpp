// For fuzz targets: aborts when a checked rule is broken, so that libFuzzer keeps the input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

namespace daqloom::base {

inline void require(bool holds) {
    if (!holds) {
        std::abort();
    }
}

/// `broken`: the first broken rule, or empty.
inline int fuzz_result(const std::string& broken) {
    if (!broken.empty()) {
        std::fprintf(stderr, "broken promise: %s\n", broken.c_str());
        std::abort();
    }
    return 0;
}

}  // namespace daqloom::base

/// Fuzz target that checks the result of `broken_promise(input)` for any bytes; empty: no error.
#define DAQLOOM_FUZZ(broken_promise)                                                    \
    extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
        return daqloom::base::fuzz_result(broken_promise(std::span(data, size)));       \
    }
