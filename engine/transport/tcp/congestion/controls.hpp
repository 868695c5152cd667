// The list of congestion controls.
#pragma once

#include <algorithm>
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

    /// Calls see(std::type_identity<Control>) for one of the list.
    template <class See>
    static constexpr decltype(auto) visit(CongestionControl control, See&& see) {
        return visit_from<0, Controls...>(control, see);
    }

    /// Calls see(control, name) for each of the list.
    template <class See>
    static void each(See see) {
        std::underlying_type_t<CongestionControl> value = 0;
        (see(CongestionControl{value++}, Controls::kName), ...);
    }

  private:
    template <std::size_t index, class First, class... Rest, class See>
    static constexpr decltype(auto) visit_from(CongestionControl control, See& see) {
        if constexpr (sizeof...(Rest) > 0) {
            if (control != CongestionControl{index}) {
                return visit_from<index + 1, Rest...>(control, see);
            }
        }
        return see(std::type_identity<First>{});
    }
};

/// In the order of the enumeration.
using CongestionControls = ControlList<NewReno, Cubic, Dctcp, StaticWindow>;

}  // namespace daqloom::transport
