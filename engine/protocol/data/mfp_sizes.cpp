#include "protocol/data/mfp_sizes.hpp"

#include <algorithm>
#include <cmath>

namespace daqloom::protocol {

using base::Bytes;

Bytes largest_mfp(FragmentSizes kind, Bytes mean) {
    return kind == FragmentSizes::fixed ? std::max<Bytes>(mean, 1)
                                        : mean + 10 * static_cast<Bytes>(std::sqrt(mean)) + 64;
}

Bytes MfpSizes::next() {
    const Bytes bytes =
        kind_ == FragmentSizes::fixed ? mean_ : random_.poisson(static_cast<double>(mean_));
    return std::clamp<Bytes>(bytes, 1, largest_);
}

}  // namespace daqloom::protocol
