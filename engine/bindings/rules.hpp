// The rules of building protocols, as an attribute of every configuration that has them: simulated
// and live.
#pragma once

#include <type_traits>

#include "bindings/settings.hpp"
#include "protocol/schedule/daqpipe_rules.hpp"
#include "protocol/schedule/pull_rules.hpp"
#include "protocol/schedule/shift_rules.hpp"

namespace daqloom::bindings {

inline void bind_rules(nanobind::module_& module) {
    bind_config<protocol::ShiftRules>(module, "ShiftRules", "Rules of linear shifting.");
    bind_config<protocol::DaqpipeRules>(module, "DaqpipeRules", "Rules of DAQPIPE.");
    bind_config<protocol::PullRules>(module, "PullRules", "Rules of pull event building.");
}

/// Binds the part `Rules` of a configuration that derives from it.
template <class Rules, class Config, class... Base>
void bind_rules_of(nanobind::class_<Config, Base...>& cls, const char* name) {
    if constexpr (std::is_base_of_v<Rules, Config>) {
        cls.def_prop_rw(
            name, [](Config& self) -> Rules& { return self; },
            [](Config& self, const Rules& rules) { static_cast<Rules&>(self) = rules; });
    }
}

template <class Config, class... Base>
void bind_rules(nanobind::class_<Config, Base...>& cls) {
    bind_rules_of<protocol::ShiftRules>(cls, "shift_rules");
    bind_rules_of<protocol::DaqpipeRules>(cls, "daqpipe_rules");
    bind_rules_of<protocol::PullRules>(cls, "pull_rules");
}

}  // namespace daqloom::bindings
