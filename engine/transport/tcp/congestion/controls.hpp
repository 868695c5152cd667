// The list of congestion controls.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "transport/tcp/congestion/cubic.hpp"
#include "transport/tcp/congestion/dctcp.hpp"
#include "transport/tcp/congestion/newreno.hpp"
#include "transport/tcp/congestion/static_window.hpp"

namespace daqloom::transport {

enum class CongestionControl : std::uint8_t { newreno, cubic, dctcp, static_window };

template <CongestionControlLike... Controls>
struct ControlList {
    static constexpr std::size_t kBytes = std::max({sizeof(Controls)...});
    static constexpr std::array kNeedsEcn = {Controls::needs_ecn...};

    /// Calls see(std::type_identity<Control>) for the type of the given control.
    template <class See>
    static void visit(CongestionControl control, See see) {
        auto place = static_cast<std::uint8_t>(control);
        ((place-- == 0 ? see(std::type_identity<Controls>{}) : void()), ...);
    }
};

/// All congestion controls, in the order of the enumeration.
using CongestionControls = ControlList<NewReno, Cubic, Dctcp, StaticWindow>;

}  // namespace daqloom::transport
