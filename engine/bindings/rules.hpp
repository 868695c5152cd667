// The rules of building protocols, as attributes of every configuration that has them: simulated
// and live. Times in seconds (`_s`).
#pragma once

#include <type_traits>

#include "bindings/casters.hpp"
#include "protocol/schedule/daqpipe_rules.hpp"
#include "protocol/schedule/pull_rules.hpp"
#include "protocol/schedule/shift_rules.hpp"

namespace daqloom::bindings {

template <class Config, class... Base>
void bind_rules(nanobind::class_<Config, Base...>& cls) {
    if constexpr (std::is_base_of_v<protocol::ShiftRules, Config>) {
        cls.def_rw("change", &Config::change)
            .def_rw("barrier", &Config::barrier)
            .def_rw("meps_per_phase", &Config::meps_per_phase)
            .def_rw("phases_per_barrier", &Config::phases_per_barrier)
            .def_rw("barrier_slack", &Config::barrier_slack)
            .def_rw("leaves_step", &Config::leaves_step)
            .def_rw("phases_under_way", &Config::phases_under_way)
            .def_rw("pace", &Config::pace)
            .def_rw("writers", &Config::writers)
            .def_rw("write_order", &Config::write_order)
            .def_rw("barrier_groups", &Config::barrier_groups)
            .def_rw("keeps_dummies", &Config::keeps_dummies)
            .def_rw("window_s", &Config::window)
            .def_rw("grace_s", &Config::grace);
    }
    if constexpr (std::is_base_of_v<protocol::DaqpipeRules, Config>) {
        cls.def_rw("is_push", &Config::is_push)
            .def_rw("credits", &Config::credits)
            .def_rw("parallel_sends", &Config::parallel_sends)
            .def_rw("slot_s", &Config::slot);
    }
    if constexpr (std::is_base_of_v<protocol::PullRules, Config>) {
        cls.def_rw("arrivals", &Config::arrivals)
            .def_rw("event_size", &Config::event_size)
            .def_rw("share", &Config::share)
            .def_rw("assignment", &Config::assignment)
            .def_rw("concurrent_events", &Config::concurrent_events)
            .def_rw("outstanding_fragments", &Config::outstanding_fragments)
            .def_rw("response", &Config::response)
            .def_rw("processing", &Config::processing);
    }
}

}  // namespace daqloom::bindings
