// For tests: inputs and outputs of a unit, in words, with one line per input.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/units/unit_message.hpp"

namespace daqloom::protocol {

class Script {
  protected:
    using Kind = UnitMessage::Kind;

    template <class... Values>
    void input(fmt::format_string<Values...> text, Values&&... values) {
        outputs_ += "\n> " + fmt::format(text, std::forward<Values>(values)...);
    }
    template <class... Values>
    void say(fmt::format_string<Values...> text, Values&&... values) {
        outputs_ += " | " + fmt::format(text, std::forward<Values>(values)...);
    }
    static const char* name(Kind kind) {
        static constexpr std::array names = {
            "none",   "announce", "grant",   "discard", "barrier",           "last answer",
            "assign", "done",     "request", "closing", "last announcement", "last assignment",
            "ready",  "go",       "through"};
        return names.at(static_cast<std::size_t>(kind));
    }

    std::string outputs_;
};

/// Script of a unit on node 0, whose builder unit requests fragments. Both nodes read out and
/// build; node 1 is lost. The builder unit's memory has ten places per event, and a fragment has
/// seven bytes. `Self` is the derived script, which is also the unit's world.
template <class Self, class PlayedUnit>
class RequestedScript : public Script {
  public:
    using Unit = PlayedUnit;
    static constexpr std::uint32_t nodes = 2;

    static std::string play(typename Unit::Config config) {
        config.begin = base::Time::zero();
        auto unit = Unit::make(std::move(config));
        return unit ? Self(std::move(*unit)).run() : unit.error().message;
    }

    void send(ReadoutIndex to, const UnitMessage& message) {
        say("{} {} to readout {}", name(message.kind), message.number, to.value());
        if (message.kind == Kind::request) {
            outputs_ += fmt::format(": {}", message.values[0]);
        }
    }
    void send(BuilderIndex to, const UnitMessage& message) {
        say("{} {} to builder {}", name(message.kind), message.number, to.value());
    }
    [[nodiscard]] base::Bytes held(EventId event) const { return number(event) < taken_ ? 7 : 0; }
    void write(EventId event, BuilderIndex to, base::Bytes offset, base::Bytes bytes) {
        say("write {} to builder {} at {}: {} B", number(event), to.value(), offset, bytes);
    }
    void arrived(base::Time at) { say("arrived at {} ns", at.ps / 1'000); }
    void assigned(EventId event, BuilderIndex builder) {
        say("assigned {} to {}", number(event), builder.value());
    }
    void give_back(std::uint32_t count) { say("give back {}", count); }
    void collect(EventId event, std::uint32_t slot) {
        say("collect {} in {}", number(event), slot);
    }
    static base::Bytes place(std::uint32_t slot, ReadoutIndex readout) {
        return base::Bytes{10} * slot + readout.value();
    }
    void deliver(EventId event, std::uint32_t slot) {
        say("deliver {} from {}", number(event), slot);
    }

  protected:
    explicit RequestedScript(Unit unit) : unit_(std::move(unit)) {}

    void data() {
        input("data");
        ++taken_;
        unit_.on_data(now_, world());
    }
    void request(std::uint32_t node, std::uint64_t event, base::Bytes place) {
        input("request {} by {}", event, node);
        receive_message(node, {Kind::request, 0, event, {&place, 1}});
    }
    void receive(std::uint32_t node, Kind kind, std::uint64_t number) {
        input("{} {} by {}", name(kind), number, node);
        receive_message(node, {kind, 0, number, {}});
    }
    void written(std::uint64_t event, std::uint32_t node) {
        input("written {} by {}", event, node);
        unit_.on_fragment(EventId{event}, ReadoutIndex(node), 7, now_, world());
    }
    void write_done(std::uint64_t event, std::uint32_t builder) {
        input("write done {}", event);
        unit_.on_write_done(EventId{event}, BuilderIndex(builder), world());
    }
    void consumed(std::uint64_t event) {
        input("consumed {}", event);
        unit_.on_consumed(EventId{event}, now_, world());
    }

    void close() {
        input("close");
        const std::array<ReadoutIndex, 1> readouts = {ReadoutIndex(1)};
        const std::array<BuilderIndex, 1> builders = {BuilderIndex(1)};
        unit_.on_close(readouts, builders, now_, world());
    }
    void say_whether_drained() {
        say("{}, next {}", unit_.is_drained() ? "drained" : "not drained", unit_.next_event());
    }
    std::string outputs() {
        say("ignored {}", unit_.unexpected_messages());
        return outputs_ + "\n";
    }

    static std::uint64_t number(EventId event) { return static_cast<std::uint64_t>(event); }
    Self& world() { return static_cast<Self&>(*this); }

    Unit unit_;
    base::Time now_ = base::Time::zero();
    std::uint64_t taken_ = 0;  ///< fragments that the source has delivered

  private:
    void receive_message(std::uint32_t node, const UnitMessage& message) {
        if (!unit_.on_message(ReadoutIndex(node), BuilderIndex(node), message, now_, world())) {
            say("refused");
        }
    }
};

}  // namespace daqloom::protocol
