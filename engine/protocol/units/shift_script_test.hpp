// For tests: a short run of the unit on node 0 of two. Both nodes read out two streams and build.
// Phases change after a tournament barrier. Node 1 is lost in round 1.
#pragma once

#include <fmt/ranges.h>

#include <array>
#include <map>
#include <span>
#include <vector>

#include "protocol/units/script_test.hpp"
#include "protocol/units/shift_unit.hpp"

namespace daqloom::protocol {

class ShiftScript : public Script {
  public:
    static constexpr std::uint32_t nodes = 2;
    static constexpr std::uint32_t streams = 2;
    /// Multiples of any alignment, so that a MEP has the same layout for all alignments.
    static constexpr std::array<base::Bytes, streams> sizes = {64, 128};

    static std::string play(const ShiftUnitConfig& config) {
        auto unit = ShiftUnit::make(config, *LinearShift::folded(nodes));
        if (!unit) {
            return unit.error().message;
        }
        return ShiftScript(config, std::move(*unit)).run();
    }

    /// Inputs and outputs of the unit. Two rounds are buffered, so that the fifth MFP of a stream
    /// waits; one MEP at a time is announced to a builder unit. In a tournament of two, unit 0
    /// releases unit 1. Node 1 never writes its MFPs of MEP 2.
    static constexpr const char* expected = R"(
> start | stage 0: entering | timer 0 at 1 ns
> data | admitted 0.0 | admitted 0.1 | announce 0 to builder 0: [64, 128]
> data | admitted 1.0 | admitted 1.1 | announce 1 to builder 1: [64, 128]
> data | admitted 2.0 | admitted 2.1
> data | admitted 3.0 | admitted 3.1
> data
> announce 0 by 0
> announce 0 by 1 | answers 0: true | grant 0 to readout 0: [0, 64] | answers 0: true | grant 0 to readout 1: [192, 256]
> grant 0 | announce 2 to builder 0: [64, 128]
> phase | stage 0: sending | write 0.0 to builder 0: 64 B | write 0.1 to builder 0: 128 B
> write done 0.0 | acknowledge 0.0
> write done 0.1 | acknowledge 0.1 | stage 0: in barrier
> barrier by 1 | barrier 0.1 to readout 1 | stage 1: entering | timer 0 at 2 ns
> freed | admitted 4.0 | admitted 4.1
> written 0 by 0
> written 0 by 1 | deliver 0: 384 B
> consumed 0
> announce 2 by 0
> announce 2 by 1 | answers 2: true | grant 2 to readout 0: [0, 64] | answers 2: true | grant 2 to readout 1: [192, 256]
> grant 2 | announce 4 to builder 0: [64, 128]
> phase | stage 1: sending
> close | stage 1: finished | write 2.0 to builder 0: 64 B | write 2.1 to builder 0: 128 B | closing 2 to readout 0
> closing 2 | last announcement 2 to builder 0
> last announcement 2 | last answer 2 to readout 0
> last answer 2
> write done 2.0
> write done 2.1
> written 2 by 0 | drained, next 3
> end | deliver 2: 384 B | acknowledge 1.0 | acknowledge 2.0 | acknowledge 1.1 | acknowledge 2.1 | ignored 0 + 0 + 0
)";

    // ---- the unit's world

    void send(ReadoutIndex to, const UnitMessage& message) {
        const auto number = message.number;
        if (message.kind == UnitMessage::Kind::grant) {
            offsets_[number].insert(offsets_[number].end(), message.values.begin(),
                                    message.values.end());
            std::vector<base::Bytes> places(message.values.begin(), message.values.end());
            for (base::Bytes& place : places) {
                place -= offsets_[number].front();
            }
            say("grant {} to readout {}: {}", number, to.value(), places);
        } else if (message.kind == UnitMessage::Kind::barrier) {
            say("barrier {}.{} to readout {}", number, message.round, to.value());
        } else {
            say("{} {} to readout {}", name(message.kind), number, to.value());
        }
    }
    void send(BuilderIndex to, const UnitMessage& message) {
        if (message.kind == UnitMessage::Kind::announce) {
            say("announce {} to builder {}: {}", message.number, to.value(), message.values);
        } else {
            say("{} {} to builder {}", name(message.kind), message.number, to.value());
        }
    }
    void set_timer(base::Time at, UnitTimer timer) {
        const auto first = static_cast<int>(UnitTimer::What::phase);
        say("timer {} at {} ns", static_cast<int>(timer.what) - first, at.ps / 1'000);
    }
    void admitted(StreamIndex s, MepId m, base::Bytes) {
        say("admitted {}.{}", number(m), s.value());
    }
    void write(const PushWrite& w) {
        say("write {}.{} to builder {}: {} B", number(w.mep), w.stream.value(), w.builder.value(),
            w.bytes);
    }
    void acknowledge(StreamIndex s, MepId m) { say("acknowledge {}.{}", number(m), s.value()); }
    void enter_barrier(std::uint64_t generation) { say("enter {}", generation); }
    void stage(std::uint64_t step, ShiftStage stage) {
        constexpr std::array<const char*, 6> stages = {"entering", "asking",     "sending",
                                                       "idle",     "in barrier", "finished"};
        say("stage {}: {}", step, stages[static_cast<std::size_t>(stage)]);
    }
    void answered(MepId m, bool is_granted) { say("answers {}: {}", number(m), is_granted); }
    void deliver(MepId m, base::Bytes, base::Bytes bytes) {
        say("deliver {}: {} B", number(m), bytes - header_);
    }

  private:
    ShiftScript(const ShiftUnitConfig& config, ShiftUnit unit)
        : unit_(std::move(unit)),
          header_(aligned(config.builder.layout.header, config.builder.layout.alignment)) {}

    std::string run() {
        input("start");
        unit_.on_start(base::Time::zero(), now_, *this);
        for (std::uint32_t mep = 0; mep < 5; ++mep) {  // the last waits for room
            input("data");
            for (std::uint32_t s = 0; s < streams; ++s) {
                unit_.on_data(StreamIndex(s), sizes[s], *this);
            }
        }
        build(0);
        phase();
        write_done(0);
        input("barrier by 1");
        now_ += base::nanoseconds(1);
        receive(1, {Kind::barrier, 0, 0, {}});
        input("freed");
        for (std::uint32_t s = 0; s < streams; ++s) {
            unit_.on_acknowledged(StreamIndex(s), *this);
        }
        written(0, 0);
        written(0, 1);
        input("consumed 0");
        unit_.on_consumed(MepId{0}, *this);
        build(2);
        phase();
        lose_the_other();
        say("ignored {} + {} + {}", unit_.ignored().messages, unit_.ignored().writes,
            unit_.ignored().others);
        return outputs_ + "\n";
    }

    /// Both nodes announce the MEP, and the readout unit of node 0 receives the grant.
    void build(std::uint64_t mep) {
        for (std::uint32_t node = 0; node < nodes; ++node) {
            input("announce {} by {}", mep, node);
            receive(node, {Kind::announce, 0, mep, sizes});
        }
        input("grant {}", mep);
        receive(0, {Kind::grant, 0, mep, std::span(offsets_[mep]).first(streams)});
    }
    void phase() {
        input("phase");
        unit_.on_timer(UnitTimer::What::phase, now_, *this);
    }
    void write_done(std::uint64_t mep) {
        for (std::uint32_t s = 0; s < streams; ++s) {
            input("write done {}.{}", mep, s);
            unit_.on_write_done(MepId{mep}, StreamIndex(s), now_, *this);
        }
    }
    void written(std::uint64_t mep, std::uint32_t node) {
        input("written {} by {}", mep, node);
        for (std::uint32_t s = 0; s < streams; ++s) {
            unit_.on_written(ReadoutIndex(node), StreamIndex(s), MepId{mep}, now_, *this);
        }
    }
    void lose_the_other() {
        input("close");
        const std::array<ReadoutIndex, 1> readouts = {ReadoutIndex(1)};
        const std::array<BuilderIndex, 1> builders = {BuilderIndex(1)};
        unit_.on_close(readouts, builders, now_, *this);
        for (const Kind kind : {Kind::closing, Kind::last_announcement, Kind::last_answer}) {
            input("{} 2", name(kind));
            receive(0, {kind, 0, 2, {}});
        }
        write_done(2);
        written(2, 0);
        say("{}, next {}", unit_.is_drained() ? "drained" : "not drained", unit_.next_mep());
        input("end");
        unit_.on_end(unit_.next_mep(), *this);
    }
    void receive(std::uint32_t node, const UnitMessage& message) {
        if (!unit_.on_message(ReadoutIndex(node), BuilderIndex(node), message, now_, *this)) {
            say("refused");
        }
    }

    static std::uint64_t number(MepId mep) { return static_cast<std::uint64_t>(mep); }

    ShiftUnit unit_;
    base::Bytes header_;  ///< of a MEP, which only a live one has
    base::Time now_ = base::nanoseconds(1);
    std::map<std::uint64_t, std::vector<base::Bytes>> offsets_;  ///< granted, by MEP
};

}  // namespace daqloom::protocol
