// Generated data for a source of a unit.
#pragma once

#include <memory>

#include "base/expected.hpp"
#include "live/ends/source.hpp"
#include "protocol/data/mfp_generator.hpp"

namespace daqloom::live {

enum class Content {
    every,  ///< each MFP is generated, so that every byte of the built event can be checked
    /// The buffer is filled with MFPs once at the beginning; later only event ids are set, so that
    /// the source costs little when the transport is measured.
    once,
};

/// Fails if the buffer is too small for an MFP or, for `once`, in use.
base::expected<std::unique_ptr<MfpFeed>> generate_mfps(protocol::MfpGenerator generator,
                                                       Content content, Buffer& buffer);

}  // namespace daqloom::live
