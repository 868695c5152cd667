// Random small racks and the laws that their runs must obey, for tests and fuzzing.
#pragma once

#include <span>

#include "base/byte_source_test.hpp"
#include "systems/rack/rack_system_test.hpp"

namespace daqloom::systems {

inline SwitchConfig any_small_switch(base::ByteSource& from) {
    SwitchConfig config;
    config.model = static_cast<BufferModel>(from.byte() % 5);
    config.ecn_threshold = from.coin() ? from.number(500, 15'000) : 0;
    switch (config.model) {
        case BufferModel::infinite:
            break;
        case BufferModel::drop_tail:
            config.queue_packets = static_cast<std::uint32_t>(from.number(0, 40));
            config.port_limit = from.coin() ? from.number(10'000, 60'000) : 0;
            config.buffer = from.coin() ? from.number(10'000, 200'000) : 0;
            break;
        case BufferModel::shared_memory:
            config.buffer = from.number(20'000, 80'000) * from.one_of({1, 4});
            config.dedicated = from.number(0, 10'000);
            config.dedicated_ports = from.coin() ? 16 : 0;
            config.alpha = from.one_of({0.125, 0.5, 1.0, 2.0, 8.0});
            config.port_limit = from.coin() ? from.number(10'000, 60'000) : 0;
            config.cell_size = from.one_of({0, 208, 256});
            config.cell_metadata = config.cell_size != 0 && from.coin() ? 64 : 0;
            break;
        case BufferModel::voq:
            config.buffer = from.number(20'000, 80'000) * from.one_of({1, 10});
            config.port_limit = from.coin() ? from.number(10'000, 60'000) : 0;
            break;
        case BufferModel::software:
            config.software.ring_packets = static_cast<std::uint32_t>(from.number(1, 100));
            config.software.pace =
                base::megabits_per_second(from.coin() ? from.number(50, 1000) : 0);
            config.software.destinations.assign(1, network::NodeIndex(from.byte() % 2));
            config.software.cores = static_cast<std::uint32_t>(from.number(1, 4));
            config.software.packet_cost = base::nanoseconds(from.one_of({0, 100, 1'000}));
            config.software.batch_cost = base::nanoseconds(from.one_of({0, 500}));
            config.software.descriptors = static_cast<std::uint32_t>(from.number(1, 100));
            break;
    }
    return config;
}

inline TcpConfig any_tcp(base::ByteSource& from) {
    TcpConfig tcp;
    tcp.congestion = static_cast<CongestionControl>(from.byte() % 4);
    tcp.mss = from.one_of<base::Bytes>({1448, 8948, 536, 97});
    tcp.static_window = tcp.mss * from.number(1, 40);
    tcp.initial_window = static_cast<std::uint32_t>(from.number(1, 20));
    tcp.receive_window = tcp.mss * from.number(1, 200);
    tcp.ack_every = static_cast<std::uint32_t>(from.number(1, 4));
    tcp.delayed_ack =
        from.one_of({base::Time::zero(), base::microseconds(500), base::milliseconds(40)});
    tcp.rto_min = from.one_of({base::milliseconds(200), base::milliseconds(1)});
    tcp.tso_burst = from.coin() ? 16'384 : 0;
    tcp.quick_acks = from.coin();
    tcp.rack = from.coin();
    tcp.tail_loss_probe = from.coin();
    tcp.restart_after_idle = from.coin();
    tcp.hystart = from.coin();
    tcp.timestamps = from.coin();
    return tcp;
}

/// A rack of at most 6 readout and 4 builder units, with some tens of events of some tens of kB.
inline RackConfig any_small_rack(std::span<const std::uint8_t> bytes) {
    using base::megabits_per_second;
    using Delay = base::DelayDistribution;
    base::ByteSource from(bytes);
    const auto any_delay = [&from] {
        return Delay{static_cast<Delay::Kind>(from.byte() % 4),
                     base::microseconds(from.number(0, 200)),
                     base::microseconds(from.number(0, 50))};
    };
    RackConfig config;
    config.readout_units = static_cast<std::uint32_t>(from.number(1, 6));
    config.builder_units = static_cast<std::uint32_t>(from.number(1, 4));
    config.duration = base::milliseconds(from.one_of({5, 20, 60}));
    config.warmup = from.coin() ? config.duration / 4 : base::Time::zero();
    config.seed = from.byte();
    config.bins = static_cast<std::uint32_t>(from.number(1, 50));

    config.arrivals.kind = static_cast<protocol::ArrivalsConfig::Kind>(from.byte() % 3);
    config.arrivals.rate_hz = static_cast<double>(from.number(1, 40)) / config.duration.seconds();
    using Size = protocol::EventSizeConfig::Kind;
    config.event_size.kind = from.one_of({Size::fixed, Size::gaussian, Size::gamma, Size::poisson});
    config.event_size.mean = from.number(1, 60'000) * from.one_of({1, 4});
    config.event_size.spread_bytes = 0.25 * static_cast<double>(config.event_size.mean);
    config.event_size.quantum = 1 + config.event_size.mean / 20;
    if (from.coin()) {
        for (std::uint32_t readout = 0; readout < config.readout_units; ++readout) {
            config.share.push_back(1 + from.byte() % 5);
        }
    }

    config.assignment = static_cast<protocol::Assignment>(from.byte() % 3);
    config.concurrent_events = static_cast<std::uint32_t>(from.number(1, 8));
    config.outstanding_fragments = static_cast<std::uint32_t>(from.number(0, 9));
    config.request_size = from.number(1, 3'000);
    config.response = any_delay();
    for (int stage = from.byte() % 3; stage > 0; --stage) {
        config.processing.push_back(any_delay());
    }
    config.manager_is_networked = from.coin();
    config.readout_cost_per_message = base::microseconds(from.one_of({0, 0, 1, 30}));
    config.builder_cost_per_message = base::microseconds(from.one_of({0, 0, 1, 30}));

    const auto any_link = [&from](std::int64_t lowest, std::int64_t highest) {
        return LinkConfig{megabits_per_second(from.number(lowest, highest)),
                          base::microseconds(from.number(0, 30)),
                          {}};
    };
    config.readout_link = any_link(500, 10'000);
    config.uplink = any_link(500, 40'000);
    config.uplinks = static_cast<std::uint32_t>(from.number(1, 3));
    config.access_link = any_link(100, 3'000);
    config.tor = any_small_switch(from);
    if (from.coin()) {
        config.core = any_small_switch(from);
    }
    config.tcp = any_tcp(from);
    config.access_loss.probability = from.one_of({0.0, 0.0, 0.003, 0.1});
    config.access_loss.period = static_cast<std::uint64_t>(from.one_of({0, 0, 50}));
    if (from.coin()) {
        config.tcp.packet_latency = any_delay();
    }
    const auto may_shape = [](const SwitchConfig& of) {  // shaping needs first-in first-out ports
        return of.model != BufferModel::voq && of.model != BufferModel::software;
    };
    if (may_shape(config.tor) && may_shape(config.core)) {
        for (LinkConfig* const link : {&config.readout_link, &config.uplink, &config.access_link}) {
            link->bucket = from.one_of({0, 500, 1'945, 20'000});
        }
    }
    if (from.coin()) {
        config.storage = {.units = static_cast<std::uint32_t>(from.number(1, 3)),
                          .accepted = from.one_of({0.2, 1.0}),
                          .timeout = base::microseconds(from.one_of({300, 5'000, 1'000'000}))};
    }
    return config;
}

/// The first law that a run of `config` breaks, or an empty string. `pauses` cut the run into
/// pieces.
inline std::string broken_promise(const RackConfig& config, int pauses) {
    auto made = Rack::make(config);
    if (!made) {
        return made.error().message;
    }
    Rack& rack = **made;
    for (int piece = 1; piece <= pauses + 1; ++piece) {
        rack.run(config.duration * piece / (pauses + 1));
        if (const auto conserved = rack.check_conservation(); !conserved) {
            return conserved.error().message;
        }
    }
    const RackReport report = rack.report();
    const auto limit = [](base::Bytes buffer) {
        return buffer == 0 ? std::int64_t{1} << 60 : buffer;
    };
    if (report.tor_peak > limit(config.tor.buffer) ||
        report.core_peak > limit(config.core.buffer)) {
        return "a switch held more than its buffer";
    }
    if (config.warmup == base::Time::zero() &&
        report.events_arrived !=
            report.events_built + report.events_in_flight + report.events_waiting) {
        return "not every event that came is built, under way or waiting";
    }
    const std::uint64_t ends = report.events_unstored + report.events_storing;
    if (config.warmup == base::Time::zero() &&
        (report.events_stored > report.events_accepted ||
         report.events_stored + ends < report.events_accepted ||
         report.storage_latency.count() != report.events_stored)) {
        return "not every event accepted is stored, given up or held";
    }
    if (report.events_built > 0 && (rack.latency().count() != report.events_built ||
                                    rack.latency().min() <= base::Time::zero())) {
        return "not every event built has a latency";
    }
    if (config.tor.model == BufferModel::infinite && config.core.model == BufferModel::infinite &&
        report.drops > 0) {
        return "a switch without limits dropped frames";
    }
    if (report.total_ack_hops > report.total_packet_hops ||
        report.total_packet_hops > report.total_sim_events) {
        return "hops and events do not add up";
    }
    return {};
}

}  // namespace daqloom::systems
