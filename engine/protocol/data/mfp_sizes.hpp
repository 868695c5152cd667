// The sizes of a stream's multi-fragment packets (MFPs).
#pragma once

#include <utility>

#include "base/random.hpp"
#include "base/units.hpp"

namespace daqloom::protocol {

enum class FragmentSizes {
    fixed,    ///< all fragments of a stream have the mean size
    poisson,  ///< each size is Poissonian about its mean, in bytes
};

/// Upper limit on the sizes of MFPs with this mean: Poissonian sizes are cut off more than ten
/// standard deviations above the mean.
base::Bytes largest_mfp(FragmentSizes kind, base::Bytes mean);

/// The sizes of one stream's successive MFPs, at least 1 byte. The sum of independent Poissonian
/// sizes is Poissonian about the sum of their means, so one random draw gives the size of an MFP
/// with any number of fragments.
class MfpSizes {
  public:
    /// `mean`: mean size of an MFP, 0 or more.
    MfpSizes(FragmentSizes kind, base::Bytes mean, base::RandomStream random)
        : kind_(mean > 0 ? kind : FragmentSizes::fixed),
          mean_(mean),
          largest_(largest_mfp(kind_, mean)),
          random_(std::move(random)) {}

    base::Bytes next();

  private:
    FragmentSizes kind_;
    base::Bytes mean_;
    base::Bytes largest_;
    base::RandomStream random_;
};

}  // namespace daqloom::protocol
