#include "ethernet/rack.hpp"

#include <fmt/format.h>

#include <numeric>

namespace daqloom::ethernet {

using base::Bytes;
using base::Time;
using protocol::BuilderIndex;
using protocol::EventId;
using protocol::ReadoutIndex;

namespace {

EventId id_of(std::uint64_t event) { return static_cast<EventId>(event); }
std::uint64_t number_of(EventId event) { return static_cast<std::uint64_t>(event); }

TcpSenderCounters difference(const TcpSenderCounters& now, const TcpSenderCounters& before) {
    return {now.fast_retransmissions - before.fast_retransmissions,
            now.probe_retransmissions - before.probe_retransmissions,
            now.timeout_retransmissions - before.timeout_retransmissions,
            now.timeouts_whole_window - before.timeouts_whole_window,
            now.timeouts_tail - before.timeouts_tail,
            now.timeouts_retransmission - before.timeouts_retransmission,
            now.recoveries - before.recoveries};
}

/// Opening a connection measured the way there and back while it was empty.
TcpConfig with_handshake(const RackConfig& config) {
    TcpConfig tcp = config.tcp;
    if (tcp.handshake_rtt == Time::zero()) {
        for (const LinkConfig* link : {&config.readout_link, &config.uplink, &config.access_link}) {
            const Time frame = base::WireClock(link->rate)(kMinimumFrame + kWireOverhead);
            tcp.handshake_rtt += (link->delay + frame) * 2;
        }
    }
    return tcp;
}

}  // namespace

/// What the state machines of protocol/ ask for.
struct Rack::ProtocolSink {
    Rack& rack;
    std::uint32_t unit;  ///< builder or readout unit that asks

    void assign(EventId event, BuilderIndex builder) const {
        rack.begin(number_of(event), builder);
    }
    void request(EventId event, ReadoutIndex readout) const {
        rack.submit(rack.builder_host(unit), Work::send_request, rack.endpoint(unit, readout),
                    number_of(event), rack.config_.request_size);
        const EndpointIndex soon =
            rack.endpoint(unit, std::min(readout + 4, rack.config_.readouts - 1));
        rack.hosts_.prefetch(soon);      // the next to write
        rack.hosts_.prefetch(soon + 1);  // and its peer, whose inbox learns of the message
    }
    void built(EventId event) const { rack.finish(number_of(event), unit); }
    void done(EventId /*event*/) const { rack.done_builders_.push_back(unit); }
    void respond_after(Time delay, EventId event, BuilderIndex builder, Bytes bytes) const {
        rack.schedule(delay, kResponse, {number_of(event), bytes, builder, unit});
    }
    void send_fragment(EventId event, BuilderIndex builder, Bytes bytes) const {
        rack.submit(rack.readout_host(unit), Work::send_fragment, rack.endpoint(builder, unit) + 1,
                    number_of(event), bytes);
    }
};

/// Where frames go that have reached their host.
struct Rack::FrameSink {
    Rack& rack;

    void receive(const Frame& frame) const { rack.hosts_.receive(frame, rack.now_, rack); }
    void expect(const Frame& frame) const { rack.hosts_.prefetch(frame.to); }
};

base::expected<std::unique_ptr<Rack>> Rack::make(const RackConfig& config) {
    if (auto valid = validate(config); !valid) {
        return tl::unexpected(valid.error());
    }
    auto arrivals =
        protocol::Arrivals::make(config.arrivals, base::RandomStream(config.seed, "arrivals"));
    if (!arrivals) {
        return tl::unexpected(arrivals.error());
    }
    auto sizes =
        protocol::EventSizes::make(config.event_size, base::RandomStream(config.seed, "sizes"));
    if (!sizes) {
        return tl::unexpected(sizes.error());
    }
    auto manager =
        protocol::EventManager::make({config.builders, config.concurrent_events, config.assignment},
                                     base::RandomStream(config.seed, "assignment"));
    if (!manager) {
        return tl::unexpected(manager.error());
    }
    std::vector<protocol::PullBuilder> builders;
    for (std::uint32_t i = 0; i < config.builders; ++i) {
        auto builder = protocol::PullBuilder::make(
            {config.readouts, config.outstanding_fragments, config.concurrent_events});
        if (!builder) {
            return tl::unexpected(builder.error());
        }
        builders.push_back(std::move(*builder));
    }
    return std::unique_ptr<Rack>(new Rack(config, std::move(*arrivals), std::move(*sizes),
                                          std::move(*manager), std::move(builders)));
}

Rack::Rack(const RackConfig& config, protocol::Arrivals arrivals, protocol::EventSizes sizes,
           protocol::EventManager manager, std::vector<protocol::PullBuilder> builders)
    : config_(config),
      network_(events_),
      hosts_(with_handshake(config), network_, events_),
      arrivals_(std::move(arrivals)),
      sizes_(std::move(sizes)),
      manager_(std::move(manager)),
      builders_(std::move(builders)),
      processing_random_(config.seed, "processing"),
      shares_(config.readouts, config.share) {
    for (std::uint32_t readout = 0; readout < config_.readouts; ++readout) {
        readouts_.emplace_back(
            config_.response,
            base::RandomStream(config_.seed, fmt::format("response.{}", readout)));
        processors_.push_back({config_.readout_cost_per_message, Time::zero(), {}});
    }
    for (std::uint32_t builder = 0; builder < config_.builders; ++builder) {
        processors_.push_back({config_.builder_cost_per_message, Time::zero(), {}});
    }
    wire();
    events_.push({config_.duration, kEnd, 0});  // first, and so before all else of that instant
    events_.push({config_.warmup, kWarm, 0});
    schedule_arrival();
}

void Rack::wire() {
    const auto narrow = [](std::uint32_t value) { return static_cast<std::uint16_t>(value); };
    network_.add_switch(config_.core, core_ports(config_));
    network_.add_switch(config_.tor, tor_ports(config_));
    constexpr std::uint32_t host = Wiring::kHost;
    const auto route = [this](std::uint32_t at, std::uint32_t to, LinkIndex link) {
        network_.route(at, to, std::span(&link, 1));
    };

    for (std::uint32_t r = 0; r < config_.readouts; ++r) {
        const auto port = narrow(r);
        network_.add_link(config_.readout_link, {host, 0, kCore, port},
                          fmt::format("source.{}.up", r));
        const LinkIndex down = network_.add_link(config_.readout_link, {kCore, port, host, 0},
                                                 fmt::format("source.{}.down", r));
        route(kCore, readout_host(r), down);
    }
    std::vector<LinkIndex> down_to_tor;
    std::vector<LinkIndex> up_to_core;
    for (std::uint32_t i = 0; i < config_.uplinks; ++i) {
        down_to_tor.push_back(network_.add_link(
            config_.uplink, {kCore, narrow(config_.readouts + i), kTor, narrow(i)},
            fmt::format("uplink.{}.down", i)));
    }
    for (std::uint32_t i = 0; i < config_.uplinks; ++i) {
        up_to_core.push_back(network_.add_link(
            config_.uplink, {kTor, narrow(i), kCore, narrow(config_.readouts + i)},
            fmt::format("uplink.{}.up", i)));
    }
    LinkConfig access_up = config_.access_link;
    access_up.rate_limit = {0};
    for (std::uint32_t b = 0; b < config_.builders; ++b) {
        const auto port = narrow(config_.uplinks + b);
        const LinkIndex down = network_.add_link(config_.access_link, {kTor, port, host, 0},
                                                 fmt::format("access.{}.down", b));
        network_.add_link(access_up, {host, 0, kTor, port}, fmt::format("access.{}.up", b));
        route(kTor, builder_host(b), down);
        network_.route(kCore, builder_host(b), down_to_tor);
        if (config_.access_loss.probability > 0 || config_.access_loss.period > 0) {
            network_.inject_loss(down, config_.access_loss,
                                 base::RandomStream(config_.seed, fmt::format("loss.{}", b)));
        }
    }
    for (std::uint32_t r = 0; r < config_.readouts; ++r) {
        network_.route(kTor, readout_host(r), up_to_core);
    }
    for (std::uint32_t b = 0; b < config_.builders; ++b) {
        for (std::uint32_t r = 0; r < config_.readouts; ++r) {
            hosts_.connect(builder_host(b), access_down(b) + 1, readout_host(r), readout_up(r));
        }
    }
}

void Rack::run(Time until) {
    if (until < config_.duration) {
        events_.push({until, kPause, 0});
    }
    while (!ended_) {
        const sim::Event event = events_.pop();
        const sim::Event* next = events_.upcoming();
        if (next != nullptr && next->kind == kDelivery) {
            network_.prefetch(next->index);
        }
        now_ = event.at;
        if (event.kind == kPause) [[unlikely]] {
            return;
        }
        ++sim_events_;
        fingerprint_.add(event);
        if (event.kind == kDelivery) [[likely]] {
            network_.on_delivery(event.index, now_, FrameSink{*this});
        } else {
            handle(event);
        }
    }
}

void Rack::handle(const sim::Event& event) {
    switch (event.kind) {
        case kPortFree:
            network_.on_port_free(event.index, now_);
            return;
        case kSenderTimer:
            hosts_.on_sender_timer(event.index, now_);
            return;
        case kDelayedAck:
            hosts_.on_delayed_ack(event.index, now_);
            return;
        case kArrival:
            on_arrival();
            return;
        case kResponse:
            on_response(event.index);
            return;
        case kProcessed:
            on_processed(event.index);
            return;
        case kProcessor:
            on_processor(event.index);
            return;
        case kWarm:
            on_warm();
            return;
        case kSample:
            on_sample();
            return;
        case kEnd:
            ended_ = true;
            return;
        default:
            return;
    }
}

// The way of an event: arrival, assignment, requests, responses, fragments, processing.

void Rack::on_arrival() {
    const std::uint64_t event = first_record_ + records_.size();
    records_.push({sizes_.next(), Time::zero(), false, false});
    ++arrived_;
    ProtocolSink sink{*this, 0};
    manager_.on_event(id_of(event), sink);
    schedule_arrival();
}

void Rack::begin(std::uint64_t event, std::uint32_t builder) {
    record(event).assigned = now_;
    record(event).begun = true;
    ++begun_;
    ProtocolSink sink{*this, builder};
    builders_[builder].on_assigned(id_of(event), sink);
}

void Rack::on_message(EndpointIndex at, const Message& message, Time /*now*/) {
    const bool at_readout = (at & 1) != 0;
    const std::uint32_t connection = at / 2;
    const std::uint32_t host = at_readout ? readout_host(connection % config_.readouts)
                                          : builder_host(connection / config_.readouts);
    submit(host, at_readout ? Work::take_request : Work::take_fragment, at, message.label,
           message.bytes);
}

void Rack::perform(Work work, EndpointIndex endpoint, std::uint64_t event, Bytes bytes) {
    const std::uint32_t connection = endpoint / 2;
    const std::uint32_t builder = connection / config_.readouts;
    const std::uint32_t readout = connection % config_.readouts;
    switch (work) {
        case Work::send_request:
        case Work::send_fragment:
            hosts_.write(endpoint, event, bytes, now_);
            return;
        case Work::take_request: {
            ProtocolSink sink{*this, readout};
            readouts_[readout].on_request(id_of(event), builder,
                                          shares_.fragment(record(event).size, readout), sink);
            return;
        }
        case Work::take_fragment: {
            ProtocolSink sink{*this, builder};
            builders_[builder].on_fragment(id_of(event), readout, bytes, sink);
            return;
        }
    }
}

void Rack::on_response(std::uint32_t slot) {
    const Pending pending = take_pending(slot);
    ProtocolSink sink{*this, pending.readout};
    readouts_[pending.readout].on_response_due(id_of(pending.event), pending.builder, pending.bytes,
                                               sink);
}

/// All fragments are there: the event is built, its processing begins.
void Rack::finish(std::uint64_t event, std::uint32_t builder) {
    const EventRecord& built = record(event);
    ++built_;
    if (warm_) {
        bytes_built_ += built.size;
        latency_.record(now_ - built.assigned);
        BuiltBin& bin = built_bins_[static_cast<std::size_t>(
            (now_ - config_.warmup).ps / network_.occupancy(kTor)->bin_width().ps)];
        ++bin.events;
        bin.latency += now_ - built.assigned;
    }
    if (event_observer_ != nullptr) {
        event_observer_->on_built(id_of(event), builder, built.assigned, now_);
    }
    Time delay{};
    for (const base::DelayDistribution& stage : config_.processing) {
        delay += stage.draw(processing_random_);
    }
    schedule(delay, kProcessed, {event, 0, builder, 0});
}

void Rack::on_processed(std::uint32_t slot) {
    const Pending pending = take_pending(slot);
    ProtocolSink sink{*this, pending.builder};
    builders_[pending.builder].on_processed(id_of(pending.event), sink);
    record(pending.event).finished = true;
    while (!records_.empty() && records_.front().finished) {
        records_.pop();
        ++first_record_;
    }
    while (!done_builders_.empty()) {
        const std::uint32_t builder = done_builders_.back();
        done_builders_.pop_back();
        manager_.on_builder_done(builder, sink);
    }
}

// Hosts' processors, timers, and the end of the warm-up.

void Rack::submit(std::uint32_t host, Work work, EndpointIndex endpoint, std::uint64_t event,
                  Bytes bytes) {
    Host& processor = processors_[host];
    if (processor.cost == Time::zero()) {
        perform(work, endpoint, event, bytes);
        return;
    }
    processor.free_at = std::max(processor.free_at, now_) + processor.cost;
    processor.tasks.push({processor.free_at, event, bytes, endpoint, work});
    if (processor.tasks.size() == 1) {
        events_.push({processor.free_at, kProcessor, host});
    }
}

void Rack::on_processor(std::uint32_t host) {
    Host& processor = processors_[host];
    const Task task = processor.tasks.front();
    processor.tasks.pop();
    if (!processor.tasks.empty()) {
        events_.push({processor.tasks.front().done, kProcessor, host});
    }
    perform(task.work, task.endpoint, task.event, task.bytes);
}

void Rack::schedule_arrival() {
    const Time at = arrivals_.next();
    if (at <= config_.duration) {
        events_.push({std::max(at, now_), kArrival, 0});
    }
}

void Rack::schedule(Time after, ApplicationEvent kind, const Pending& pending) {
    events_.push({now_ + after, kind, pending_.put(pending)});
}

Rack::Pending Rack::take_pending(std::uint32_t slot) {
    pending_.release(slot);
    return pending_[slot];
}

void Rack::on_warm() {
    warm_ = true;
    arrived_cold_ = arrived_;
    built_cold_ = built_;
    tcp_cold_ = hosts_.counters();
    losses_cold_ = network_.injected_losses();
    marks_cold_ = network_.marks();
    for (LinkIndex i = 0; i < network_.links(); ++i) {
        links_cold_.push_back(network_.link(i).counters());
        drops_cold_.push_back(network_.link_drops(i));
    }
    network_.record_occupancy(now_, config_.duration, config_.occupancy_bins);
    built_bins_.resize(config_.occupancy_bins);
    on_sample();
}

/// Every bin of the recorded occupancy begins with the exact value.
void Rack::on_sample() {
    network_.sample_occupancy(now_);
    events_.push({now_ + network_.occupancy(kTor)->bin_width(), kSample, 0});
}

RackReport Rack::report() {
    network_.finish_recording(now_);
    RackReport report;
    report.total_sim_events = sim_events_;
    report.total_pending_peak = events_.peak_size();
    for (LinkIndex i = 0; i < network_.links(); ++i) {
        report.total_packet_hops += network_.link(i).counters().frames;
        report.total_ack_hops += network_.link(i).counters().ack_frames;
    }
    report.events_in_flight = begun_ - built_;
    report.events_waiting = manager_.backlog();
    if (!warm_) {
        return report;
    }
    report.window = now_ - config_.warmup;
    report.events_built = built_ - built_cold_;
    report.events_arrived = arrived_ - arrived_cold_;
    report.bytes_built = bytes_built_;
    report.tcp = difference(hosts_.counters(), tcp_cold_);
    report.injected_losses = network_.injected_losses() - losses_cold_;
    report.marks = network_.marks() - marks_cold_;
    for (LinkIndex i = 0; i < network_.links(); ++i) {
        LinkCounters counters = network_.link(i).counters();
        counters.frames -= links_cold_[i].frames;
        counters.ack_frames -= links_cold_[i].ack_frames;
        counters.frame_bytes -= links_cold_[i].frame_bytes;
        report.links.push_back(counters);
        report.drops_by_link.push_back(network_.link_drops(i) - drops_cold_[i]);
        report.drops += report.drops_by_link.back();
    }
    report.core_peak = network_.occupancy(kCore)->peak().value;
    report.tor_peak = network_.occupancy(kTor)->peak().value;
    report.tor_peak_at = network_.occupancy(kTor)->peak().at;
    return report;
}

base::expected<void> Rack::check_conservation() const {
    if (auto network = network_.check_conservation(); !network) {
        return network;
    }
    return hosts_.check_conservation();
}

}  // namespace daqloom::ethernet
