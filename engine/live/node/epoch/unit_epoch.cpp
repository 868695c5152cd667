#include "live/node/epoch/unit_epoch.hpp"

#include <fmt/format.h>

namespace daqloom::live {

using base::Bytes;
using base::Time;
using protocol::Immediate;
using protocol::MepState;

UnitEpoch::UnitEpoch(const EpochParts& parts, Members members, std::uint32_t streams)
    : parts_(parts),
      members_(std::move(members)),
      counters_(*parts.counters),
      send_queue_(*parts.transport),
      streams_(streams),
      processing_(parts.config->seed,
                  fmt::format("processing of {}, {}", parts.config->self.value(), parts.epoch)),
      beats_({config().heartbeat, config().fault_timeout, config().control_grace}, config().self,
             members_.all(), now()),
      refused_messages_before_(counters_.refused_messages),
      refused_writes_before_(counters_.refused_writes) {}

void UnitEpoch::make_mep_output() {
    mep_output_.emplace(*parts_.output, parts_.tap);
    table_.resize(std::size_t{members_.readouts_in_run} * streams_);
    granted_at_.resize(Immediate::slots);
}

void UnitEpoch::on_slept(Time duration) {
    counters_.sleeps.add(1);
    if (Counter* cause = cause_of_waiting(); cause != nullptr) {
        cause->add(duration);
    }
    counters_.waiting_for_consumer_ps.add(waits_for_consumer() ? duration : Time::zero());
    counters_.waits.set(waits_for_its_own() ? 1 : 0);
    counters_.answered_to(next_mep());
}

Time UnitEpoch::keep_contact(Time now, Time until, std::uint64_t beat) {
    beats_.renewed(now, beat);
    if (const UnitIndex to = beats_.due(now); to != UnitIndex::none()) {
        protocol::UnitMessage message{.kind = protocol::UnitMessage::Kind::beat, .values = {}};
        message.number = beats_.newest();
        send_queue_.send(to, message);
    }
    return beats_.end_of(now, until);
}

void UnitEpoch::on_unreachable(UnitIndex unit) {
    counters_.unreachable.add(1);
    unreachable_.push_back(unit);
}

std::optional<Immediate> UnitEpoch::immediate_of(UnitIndex from, std::uint32_t bits) {
    const Immediate immediate = Immediate::decode(bits);
    const protocol::ReadoutIndex readout(immediate.stream / streams_);
    if (!mep_output_ || immediate.epoch != parts_.epoch % Immediate::epochs ||
        !members_.readouts.contains(readout) ||
        (from != UnitIndex::none() && from != members_.readouts[readout])) {
        refuse_write();
        return std::nullopt;
    }
    return immediate;
}

void UnitEpoch::count_refused(std::uint64_t messages, std::uint64_t writes) {
    counters_.refused_messages.set(refused_messages_before_ + refused_messages_ + messages);
    counters_.refused_writes.set(refused_writes_before_ + refused_writes_ + writes);
}

UnitEpoch::Lost UnitEpoch::lose(std::span<const UnitIndex> units) {
    send_queue_.forget(units);
    Lost lost;
    for (const UnitIndex unit : units) {
        if (!members_.readout_of.contains(unit)) {
            continue;
        }
        if (members_.readout_of[unit] != protocol::ReadoutIndex::none()) {
            lost.readouts.push_back(members_.readout_of[unit]);
        }
        if (members_.builder_of[unit] != protocol::BuilderIndex::none()) {
            lost.builders.push_back(members_.builder_of[unit]);
        }
    }
    return lost;
}

void UnitEpoch::begin_building(std::uint32_t slot) {
    if (granted_at_[slot] == Time::zero()) {
        granted_at_[slot] = now();
        counters_.meps_granted.add(1);
    }
}

void UnitEpoch::clear_table() {
    table_bytes_ = 0;
    for (std::uint32_t stream = 0; stream < table_.size(); ++stream) {
        table_[stream] = {.offset = 0,
                          .bytes = 0,
                          .source_id = static_cast<std::uint16_t>(stream),
                          .state = MepState::missing};
    }
}

void UnitEpoch::put_in_table(protocol::ReadoutIndex readout, std::uint32_t stream, Bytes offset,
                             Bytes bytes) {
    protocol::MepEntry& entry =
        table_[members_.readout_in_run[readout].value() * streams_ + stream];
    entry.bytes = bytes;
    entry.offset = offset;
    entry.state = bytes == 0 ? MepState::empty : MepState::complete;
    table_bytes_ += static_cast<std::uint64_t>(bytes);
}

void UnitEpoch::hand_over(const BuiltMep& built) {
    const Time took = now() - std::exchange(granted_at_[built.slot], Time::zero());
    counters_.building_ps.add(took);
    counters_.building.record(took);
    counters_.mfp_bytes_built.add(table_bytes_);
    counters_.mep_bytes_built.add(static_cast<std::uint64_t>(built.bytes));
    const auto memory = parts_.output->area().bytes().subspan(
        static_cast<std::size_t>(built.place), static_cast<std::size_t>(built.bytes));
    Bytes end = header_bytes();
    bool is_whole = true;
    for (protocol::MepEntry& entry : table_) {  // an empty MFP lies behind the one before it
        entry.offset = entry.bytes == 0 ? end : entry.offset;
        end = entry.offset + entry.bytes;
        is_whole = is_whole && entry.state != MepState::missing;
    }
    counters_.meps_delivered.add(1);
    (is_whole ? counters_.meps_built : counters_.meps_incomplete).add(1);
    const std::uint64_t number = in_run(built.mep);
    const protocol::MepHeader header{.mep = protocol::MepId{number},
                                     .event_id = number * config().packing,
                                     .events = config().packing};
    [[maybe_unused]] const auto written = protocol::encode_mep(
        header, table_, {reinterpret_cast<std::uint8_t*>(memory.data()), memory.size()});
    if (!config().mep_processing.empty()) {
        processed_at_.push(now() + base::draw_total(config().mep_processing, processing_));
    }
    mep_output_->put(built.key, number, built.place, built.bytes);
}

}  // namespace daqloom::live
