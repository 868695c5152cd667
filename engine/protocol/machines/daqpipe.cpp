#include "protocol/machines/daqpipe.hpp"

#include <fmt/format.h>

#include <limits>

namespace daqloom::protocol {

namespace {

using base::Bytes;

constexpr std::uint32_t most_daqpipe_units = 65'536;
constexpr std::uint32_t most_credits = 1'000'000;
constexpr std::uint64_t most_daqpipe_fragments = std::uint64_t{1} << 28;
constexpr Bytes largest_daqpipe_fragment = Bytes{1} << 32;

}  // namespace

base::expected<DaqpipeBuilder> DaqpipeBuilder::make(DaqpipeBuilderConfig config) {
    DAQLOOM_REFUSE_IF(config.readouts < 1 || config.readouts > most_daqpipe_units ||
                          config.self.value() >= most_daqpipe_units,
                      "DAQPIPE builder {} with {} readout units; give 1 to {}", config.self.value(),
                      config.readouts, most_daqpipe_units);
    DAQLOOM_REFUSE_IF(config.credits < 1 || config.credits > most_credits ||
                          std::uint64_t{config.credits} * config.readouts > most_daqpipe_fragments,
                      "DAQPIPE builder: {} credits for events of {} fragments; give 1 to {}, and "
                      "at most {} fragments in all",
                      config.credits, config.readouts, most_credits, most_daqpipe_fragments);
    DAQLOOM_REFUSE_IF(
        config.largest_fragment < 1 || config.largest_fragment > largest_daqpipe_fragment,
        "DAQPIPE builder: largest fragment of {} bytes; give 1 to "
        "{}",
        config.largest_fragment, largest_daqpipe_fragment);
    return DaqpipeBuilder(config);
}

DaqpipeBuilder::DaqpipeBuilder(DaqpipeBuilderConfig config)
    : RequestingBuilder(config.readouts, config.credits),
      config_(config),
      limit_(config.parallel_sends == 0 ? config.readouts : config.parallel_sends),
      events_(config.credits),
      fragments_(std::size_t{config.credits} * config.readouts) {}

void DaqpipeBuilder::lose(ReadoutIndex readout) {
    lost_[readout] = true;
    for (std::uint32_t place = 0; place < in_turn_.size(); ++place) {
        Event& event = events_[in_turn_[place]];
        Fragment& state = fragment(in_turn_[place], readout);
        if (state == Fragment::to_request) {
            ++event.requested;
            state = Fragment::lost;
        } else if (state == Fragment::in_flight) {
            --event.in_flight;
            state = Fragment::lost;
        }
    }
}

void DaqpipeBuilder::release(std::uint32_t place) {
    free_slot(events_[in_turn_[place]].event, in_turn_[place]);
    in_turn_.erase(place);
}

bool DaqpipeBuilder::is_drained() const {
    for (std::uint32_t place = 0; place < in_turn_.size(); ++place) {
        const Event& event = events_[in_turn_[place]];
        if (event.requested < config_.readouts || event.in_flight > 0) {
            return false;
        }
    }
    return last_assignment_.is_reported();
}

base::expected<DaqpipeReadout> DaqpipeReadout::make(DaqpipeReadoutConfig config) {
    DAQLOOM_REFUSE_IF(config.builders < 1 || config.builders > most_daqpipe_units ||
                          config.self.value() >= most_daqpipe_units,
                      "DAQPIPE readout {} with {} builders; give 1 to {}", config.self.value(),
                      config.builders, most_daqpipe_units);
    DAQLOOM_REFUSE_IF(config.credits < 1 || config.credits > most_credits,
                      "DAQPIPE readout: {} credits; give 1 to {}", config.credits, most_credits);
    return DaqpipeReadout(config);
}

DaqpipeReadout::DaqpipeReadout(DaqpipeReadoutConfig config)
    : config_(config),
      limit_(config.parallel_sends == 0 ? std::numeric_limits<std::uint64_t>::max()
                                        : config.parallel_sends),
      builders_(config.builders),
      in_turn_(before_self(0)) {}

void DaqpipeReadout::ignore_request(BuilderIndex builder) {
    const bool is_lost = builders_.contains(builder) && builders_[builder].is_lost;
    ++(is_lost ? counters_.from_lost : counters_.unexpected_requests);
}

void DaqpipeReadout::on_last_request(BuilderIndex index, std::uint64_t requests) {
    if (!builders_.contains(index) || builders_[index].is_lost ||
        builders_[index].last_request != unknown || requests < builders_[index].requests) {
        ignore_request(index);
        return;
    }
    builders_[index].last_request = requests;
}

void DaqpipeReadout::lose(Builder& builder) {
    if (builder.is_lost) {
        return;
    }
    builder.is_lost = true;
    in_flight_ -= builder.in_flight;
    for (; !builder.waiting.empty(); builder.waiting.pop()) {
        ++counters_.lost_requests;
        --requests_waiting_;
    }
}

bool DaqpipeReadout::is_drained() const {
    return is_closing_ && std::ranges::all_of(builders_.indices(), [this](BuilderIndex builder) {
               return is_served(builder, 0);
           });
}

bool DaqpipeReadout::is_served(BuilderIndex builder, std::uint64_t waiting) const {
    const Builder& its = builders_[builder];
    return its.is_lost || (its.requests + waiting == its.last_request && its.waiting.empty() &&
                           its.in_flight == 0);
}

}  // namespace daqloom::protocol
