// For tests: a short run of a DAQPIPE unit that pulls in time slots.
#pragma once

#include "protocol/units/daqpipe_unit.hpp"
#include "protocol/units/script_test.hpp"

namespace daqloom::protocol {

class DaqpipeScript : public RequestedScript<DaqpipeScript, DaqpipeUnit> {
  public:
    static constexpr DaqpipeRules rules = {
        .credits = 2, .parallel_sends = 1, .slot = base::microseconds(1)};

    /// Inputs and outputs of the unit. Even slots are turns of readout unit 0, odd slots of readout
    /// unit 1. An event has ten places, and the last memory is used first. The source never
    /// delivers event 4, and event 2 lacks the fragment of node 1.
    static constexpr const char* expected = R"(
> data | assigned 0 to 0 | assign 0 to builder 0
> data | assigned 1 to 1 | assign 1 to builder 1
> assign 0 by 0
> slot 4 | collect 0 in 1 | request 0 to readout 0: 10
> request 0 by 0 | write 0 to builder 0 at 10: 7 B
> written 0 by 0
> write done 0 | give back 1
> slot 5 | collect 0 in 1 | request 0 to readout 1: 11
> request 1 by 1 | write 1 to builder 1 at 1: 7 B
> request 3 by 1
> request 3 by 1 | refused
> assign 2 by 1 | refused
> data | assigned 2 to 0 | assign 2 to builder 0
> data | write 3 to builder 1 at 3: 7 B | assigned 3 to 1 | assign 3 to builder 1
> write done 3
> written 0 by 1 | deliver 0 from 1
> consumed 0 | done 0 to readout 0
> done 0 by 0
> assign 2 by 0 | collect 2 in 1 | request 2 to readout 1: 11
> request 4 by 0
> close | last assignment 2 to builder 0 | last assignment 2 to builder 1
> last assignment 2 by 0 | last answer 2 to readout 0
> slot 6 | collect 2 in 1 | request 2 to readout 0: 10
> request 2 by 0 | write 2 to builder 0 at 2: 7 B
> last answer 3 by 0
> time | write 4 to builder 0 at 4: 0 B
> write done 2
> write done 4
> written 2 by 0 | drained, next 5
> end | deliver 2 from 1 | ignored 0
)";

  private:
    friend RequestedScript;

    explicit DaqpipeScript(DaqpipeUnit unit) : RequestedScript(std::move(unit)) {
        now_ = base::nanoseconds(1);
    }

    std::string run() {
        data();
        data();
        receive(0, Kind::assign, 0);
        slot(4);
        request(0, 0, 10);
        written(0, 0);
        write_done(0, 0);
        slot(5);
        request(1, 1, 1);
        request(1, 3, 3);  // its source has not delivered
        request(1, 3, 3);  // twice
        receive(1, Kind::assign, 2);
        data();
        data();
        write_done(3, 1);
        written(0, 1);
        consumed(0);
        receive(0, Kind::done, 0);
        receive(0, Kind::assign, 2);
        request(0, 4, 4);
        lose_the_other();
        return outputs();
    }

    void slot(std::uint64_t slot) {
        input("slot {}", slot);
        unit_.on_slot(slot, now_, *this);
    }
    void lose_the_other() {
        close();
        receive(0, Kind::last_assignment, 2);
        slot(6);
        request(0, 2, 2);
        receive(0, Kind::last_answer, 3);
        input("time");
        if (unit_.on_time(unit_.next_timer() - base::Time{1}, *this)) {
            say("too early");
        }
        now_ = unit_.next_timer();
        unit_.on_time(now_, *this);
        write_done(2, 0);
        write_done(4, 0);
        written(2, 0);
        say_whether_drained();
        input("end");
        unit_.on_end(now_, *this);
    }
};

}  // namespace daqloom::protocol
