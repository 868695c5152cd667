#include "protocol/machines/write_pacer.hpp"

#include <fmt/format.h>

namespace daqloom::protocol {

using base::Time;

namespace {

/// A day, in ps, so that times do not overflow.
constexpr double longest_busy = 1e17;

}  // namespace

base::expected<WritePacer> WritePacer::make(WritePacerConfig config) {
    DAQLOOM_REFUSE_IF(config.readouts < 1 || config.writers < 1,
                      "{} writers at a time, of {} readout units; give at least 1 of each",
                      config.writers, config.readouts);
    return WritePacer(config);
}

WritePacer::WritePacer(WritePacerConfig config) : config_(config), last_request_(config.readouts) {
    waiting_.reserve(2 * std::size_t{config.readouts});
    writing_.reserve(std::size_t{config.writers} + 1);
    trips_.reserve(round_trips);
}

void WritePacer::end_if_through(std::vector<Request>::iterator writer, Time now) {
    if (writer->here >= writer->writes) {
        note_rate(*writer, now);
        writing_.erase(writer);
    }
}

void WritePacer::note_round_trip(Time round_trip) {
    if (round_trip == Time::zero()) {
        return;
    }
    if (trips_.size() < round_trips) {
        trips_.push_back(round_trip);
    } else {
        trips_[next_trip_++ % round_trips] = round_trip;
    }
    lead_ = *std::ranges::min_element(trips_);
}

void WritePacer::begin_busy(Time since) {
    busy_since_ = since;
    busy_bytes_ = 0;
    busy_writes_ = 0;
}

void WritePacer::note_rate(const Request& done, Time now) {
    if (config_.writers > 1 || lead_ == Time::zero()) {
        return;
    }
    busy_bytes_ += done.bytes;
    if (++busy_writes_ > 2 * most_busy) {  // halves the weight of the past
        busy_since_ += (now - busy_since_) / 2;
        busy_bytes_ /= 2;
        busy_writes_ /= 2;
    }
    if (now > busy_since_ && busy_bytes_ > 0) {
        ps_per_byte_ =
            static_cast<double>((now - busy_since_).ps) / static_cast<double>(busy_bytes_);
    }
}

Time WritePacer::expected_end() const {
    if (lead_ == Time::zero() || ps_per_byte_ == 0) {
        return Time::never();
    }
    base::Bytes bytes = busy_bytes_;
    for (const Request& writer : writing_) {
        bytes += writer.bytes;
    }
    const double lasts = std::min(ps_per_byte_ * static_cast<double>(bytes), longest_busy);
    return busy_since_ + Time{static_cast<std::int64_t>(lasts)};
}

}  // namespace daqloom::protocol
