// For tests: a short run of a unit of pull building, with rules that a test may change.
#pragma once

#include "protocol/units/pull_unit.hpp"
#include "protocol/units/script_test.hpp"

namespace daqloom::protocol {

class PullScript : public RequestedScript<PullScript, PullUnit> {
  public:
    /// One event per microsecond; an answer takes 100 ns, processing 250 ns.
    static PullRules rules() {
        PullRules rules;
        rules.arrivals = {.kind = ArrivalsConfig::Kind::deterministic, .rate_hz = 1e6};
        rules.concurrent_events = 2;
        rules.outstanding_fragments = 3;
        rules.response = {.mean = base::nanoseconds(100)};
        rules.processing = {{.mean = base::nanoseconds(150)}, {.mean = base::nanoseconds(100)}};
        return rules;
    }

    /// Inputs and outputs of the unit. Three fragments may be outstanding, so the last fragment of
    /// the second event is requested when one of the first event has arrived. The last memory is
    /// used first. Event 3 lacks the fragment of node 1.
    static constexpr const char* expected = R"(
> data
> data
> data
> data
> 1000 ns | arrived at 1000 ns | assigned 0 to 0 | assign 0 to builder 0
> 2000 ns | arrived at 2000 ns | assigned 1 to 1 | assign 1 to builder 1
> 3000 ns | arrived at 3000 ns | assigned 2 to 0 | assign 2 to builder 0
> assign 0 by 0 | collect 0 in 1 | request 0 to readout 0: 10 | collect 0 in 1 | request 0 to readout 1: 11 | collect 0 in 1
> assign 2 by 0 | collect 2 in 0 | request 2 to readout 0: 0 | collect 2 in 0
> request 0 by 0
> request 1 by 1
> 3100 ns | write 0 to builder 0 at 10: 7 B | write 1 to builder 1 at 1: 7 B
> written 0 by 0 | collect 2 in 0 | request 2 to readout 1: 1
> write done 0 | give back 1
> written 0 by 1 | deliver 0 from 1
> consumed 0
> 3350 ns | done 0 to readout 0
> done 0 by 0
> request 2 by 0
> 3450 ns | write 2 to builder 0 at 0: 7 B
> 4000 ns | arrived at 4000 ns | assigned 3 to 1 | assign 3 to builder 1
> grant 0 by 1 | refused
> assign 4 by 1 | refused
> written 2 by 0
> write done 2
> write done 1 | give back 2
> close | last assignment 2 to builder 0 | last assignment 2 to builder 1 | deliver 2 from 0
> last assignment 2 by 0 | last answer 2 to readout 0
> consumed 2
> 4250 ns | done 2 to readout 0
> last answer 2 by 0
> end | drained, next 3 | ignored 0
)";

  private:
    friend RequestedScript;

    explicit PullScript(PullUnit unit) : RequestedScript(std::move(unit)) {}

    std::string run() {
        for (int event = 0; event < 4; ++event) {
            data();
        }
        until(1'000);
        until(2'000);
        until(3'000);
        receive(0, Kind::assign, 0);
        receive(0, Kind::assign, 2);
        request(0, 0, 10);
        request(1, 1, 1);
        until(3'100);
        written(0, 0);
        write_done(0, 0);
        written(0, 1);
        consumed(0);
        until(3'350);
        receive(0, Kind::done, 0);
        request(0, 2, 0);
        until(3'450);
        until(4'000);
        receive(1, Kind::grant, 0);
        receive(1, Kind::assign, 4);
        written(2, 0);
        write_done(2, 0);
        write_done(1, 1);
        close();
        receive(0, Kind::last_assignment, 2);
        consumed(2);
        until(4'250);
        receive(0, Kind::last_answer, 2);
        input("end");
        say_whether_drained();
        return outputs();
    }

    /// Handles what is due at this time. Records an error if the next timer is another time.
    void until(std::int64_t ns) {
        input("{} ns", ns);
        if (unit_.next_timer() != base::nanoseconds(ns)) {
            say("not due");
        }
        now_ = base::nanoseconds(ns);
        unit_.on_time(now_, *this);
    }
};

}  // namespace daqloom::protocol
