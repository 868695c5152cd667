// How large the multi-fragment packets (MFPs) of each source are.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/expected.hpp"
#include "base/random.hpp"
#include "base/units.hpp"

namespace daqloom::protocol {

/// Sources alike: a part of the detector.
struct SourceGroup {
    std::uint32_t sources = 1;
    double share = 1;  ///< of the event, all sources of the group together
};

struct FragmentSizesConfig {
    enum class Kind {
        fixed,    ///< all fragments of a source have the mean size
        poisson,  ///< each is Poissonian about its mean, in bytes
    };

    Kind kind = Kind::poisson;
    base::Bytes event = 0;            ///< mean size, without the overhead
    std::vector<SourceGroup> groups;  ///< sources are numbered group by group
    std::uint32_t packing = 30'000;   ///< fragments in an MFP
    base::Bytes overhead = 0;         ///< per MFP: header and padding, see mfp_overhead
};

/// What an MFP of some mean size is never larger than: of Poissonian sizes, who draws them cuts
/// them off more than ten standard deviations above the mean.
base::Bytes largest_mfp(FragmentSizesConfig::Kind kind, base::Bytes mean);

/// The sizes of one source's successive MFPs, at least 1 byte.
class MfpSizes {
  public:
    MfpSizes(FragmentSizesConfig::Kind kind, double mean_bytes, base::Bytes overhead,
             base::RandomStream random)
        : kind_(kind), mean_bytes_(mean_bytes), overhead_(overhead), random_(std::move(random)) {}

    base::Bytes next();

    /// Of the fragments of an MFP together.
    [[nodiscard]] double mean_bytes() const { return mean_bytes_; }

  private:
    FragmentSizesConfig::Kind kind_;
    double mean_bytes_;
    base::Bytes overhead_;
    base::RandomStream random_;
};

/// The sum of independent Poissonian sizes is Poissonian about the sum of their means: an MFP takes
/// one draw, not `packing`.
class FragmentSizes {
  public:
    static base::expected<FragmentSizes> make(FragmentSizesConfig config);

    [[nodiscard]] std::uint32_t sources() const { return sources_; }
    /// Of one fragment.
    [[nodiscard]] double mean_bytes(std::uint32_t source) const;
    /// Its random stream is its own, by its number.
    [[nodiscard]] MfpSizes of(std::uint32_t source, std::uint64_t seed) const;

  private:
    explicit FragmentSizes(FragmentSizesConfig config);

    FragmentSizesConfig config_;
    std::uint32_t sources_ = 0;
};

}  // namespace daqloom::protocol
