// Random small systems in which links, nodes and units fail, and the laws that a run must obey, for
// tests and fuzzing.
#pragma once

#include <fmt/format.h>

#include <numeric>
#include <span>

#include "base/byte_source_test.hpp"
#include "base/distribution.hpp"
#include "base/units.hpp"
#include "systems/faults/any_network_test.hpp"
#include "systems/flow_system.hpp"
#include "systems/outcome_test.hpp"
#include "systems/requested/daqpipe_system.hpp"
#include "systems/requested/pull_system.hpp"
#include "systems/run/run_control_test.hpp"
#include "systems/shift/shift_system.hpp"

namespace daqloom::systems {

/// Sums of the outcomes of many runs.
struct AllOutcomes {
    std::uint64_t runs = 0;
    std::uint64_t refused = 0;  ///< systems whose configuration is refused
    std::uint64_t done = 0;     ///< runs in which all work was done
    std::uint64_t excused = 0;  ///< runs with work undone, for a cause that is counted
    std::uint64_t lossy = 0;    ///< runs that lost packets or sent some again
    std::uint64_t failed = 0;   ///< writes given up
    std::uint64_t circles = 0;
    std::uint64_t units_lost = 0;
    std::uint64_t regroupings = 0;
    std::uint64_t came_back = 0;  ///< regrouped runs that built at the end
    std::uint64_t gave_up = 0;    ///< regrouped runs that the run control ended
};

class AnySystem {
  public:
    /// Adds the outcome of the run to `all`.
    AnySystem(std::span<const std::uint8_t> bytes, AllOutcomes& all) : from_(bytes), all_(all) {}

    /// The first law that the run breaks; empty if it breaks none.
    std::string broken_promise() {
        ++all_.runs;
        switch (from_.byte() % 7) {
            case 0:
                return pull();
            case 1:
                return shift();
            case 2:
                return daqpipe();
            case 3:
                return flows();
            case 4:
                return shift_regrouping();
            case 5:
                return daqpipe_regrouping();
            default:
                return pull_regrouping();
        }
    }

  private:
    static constexpr base::Time kLong = base::seconds(1'000'000);  ///< beyond any run

    std::uint32_t number(std::int64_t least, std::int64_t most) {
        return static_cast<std::uint32_t>(from_.number(least, most));
    }
    base::Time any_time(base::Time most) {
        return base::microseconds(from_.number(0, most.ps / 1'000'000));
    }
    base::DelayDistribution any_delay() {
        using Kind = base::DelayDistribution::Kind;
        return {.kind = from_.one_of({Kind::fixed, Kind::exponential, Kind::uniform}),
                .mean = base::nanoseconds(from_.number(0, 3'000)),
                .spread = base::nanoseconds(from_.number(0, 1'000))};
    }

    // ---- common to all systems

    void draw(SystemConfig& config) {
        AnyNetwork any = any_network(from_);
        hosts_ = any.graph().hosts;
        retries_ = any.retries();
        is_tcp_ = any.is_tcp();
        is_ethernet_ = any.is_ethernet();
        whole_from_ = any.whole_from;
        config.network = std::move(any.network);
        config.transport = any.transport;
        config.message_cost = base::nanoseconds(from_.one_of({0, 0, 100, 1'000}));
        config.shared_cores = static_cast<std::uint32_t>(from_.one_of({0, 0, 1, 2}));
        config.polling_delay = base::nanoseconds(from_.one_of({0, 0, 200}));
        config.latency = any_delay();
        config.control_service_level = from_.byte() % 2;
        config.local_rate = base::gigabits_per_second(from_.one_of({0, 100}));
        config.clock_offset = base::nanoseconds(from_.one_of({0, 100}));
        config.seed = from_.byte();
        config.bins = 10;
        if (from_.byte() % 4 == 0) {
            config.path = {base::gigabits_per_second(from_.one_of({0, 50})),
                           base::gigabits_per_second(from_.one_of({100, 400})), 2};
        }
        config.duration = is_tcp_ ? base::seconds(300) : base::milliseconds(100);
        config.send_rate = base::gigabits_per_second(from_.one_of({0, 0, 50}));
        config.receive_rate = base::gigabits_per_second(from_.one_of({0, 0, 50}));
    }
    /// Draws faults of nodes on these hosts, which stop or slow down for a while. With `kills`,
    /// some are killed.
    void draw_faults(SystemConfig& config, std::vector<NodeIndex> hosts, bool kills) {
        using What = NodeChange::What;
        for (std::uint32_t faults = number(0, kills ? 4 : 2); faults > 0; --faults) {
            NodeChange change;
            change.host = hosts[from_.byte() % hosts.size()];
            change.at = any_time(base::microseconds(kills ? 2'000 : 500));
            change.what = kills ? from_.one_of({What::kill, What::kill, What::stop, What::slow})
                                : from_.one_of({What::stop, What::slow});
            change.until = change.at + base::microseconds(from_.number(1, 1'500));
            change.factor = from_.one_of({1, 2, 10});
            if (change.what == What::kill && from_.coin()) {
                change.until = {};
            }
            whole_from_ = std::max(whole_from_, std::max(change.at, change.until));
            config.node_changes.push_back(change);
        }
    }
    void add_flow(SystemConfig& config) {
        Flow flow;
        flow.name = "any";
        for (std::uint32_t host = 0; host < hosts_; ++host) {
            config.flow_hosts.emplace_back(host);
            flow.sources.push_back(host);
        }
        flow.bytes = from_.number(1, 12'000);
        flow.messages = number(1, 8);
        flow.outstanding = number(1, 4);
        flow.interval = any_time(base::microseconds(20));
        flow.is_poissonian = from_.coin();
        flow.is_datagram = is_ethernet_ && from_.coin();
        flow.service_level = from_.byte() % 2;
        config.flows = {flow};
    }

    // ---- systems with a known amount of work

    std::string pull() {
        PullSystemConfig config;
        draw(config);
        draw_pull(config, hosts_);
        const std::uint32_t events = number(1, 20);
        const base::Time interval = any_time(base::microseconds(30));
        config.arrivals.kind = protocol::ArrivalsConfig::Kind::trace;
        for (std::uint32_t event = 0; event < events; ++event) {
            config.arrivals.trace_times.push_back(interval * event);
        }
        if (from_.coin()) {
            add_flow(config);
        }
        draw_faults(config, config.readouts, false);
        return finite<PullSystem>(config, events, events * config.event_size.mean);
    }

    std::string shift() {
        ShiftSystemConfig config;
        draw(config);
        draw_shift(config, hosts_);
        config.change = !is_tcp_ && from_.byte() % 8 == 0 ? protocol::PhaseChange::by_time
                                                          : protocol::PhaseChange::by_count;
        config.window = base::microseconds(from_.number(60, 500));
        config.pace = from_.one_of({protocol::Pace::schedule, protocol::Pace::builder});
        config.writers = number(1, 3);
        config.write_order =
            from_.one_of({protocol::WriteOrder::arrival, protocol::WriteOrder::schedule});
        config.phases_per_barrier = number(1, 3);
        config.phases_under_way = number(1, 2);
        config.barrier_slack = number(0, 2);
        config.leaves_step = from_.byte() % 4 == 0;
        if (from_.coin()) {
            for (std::size_t unit = 0; unit < config.mfp_bytes.size() / config.streams; ++unit) {
                config.barrier_groups.push_back(from_.byte() % 2);
            }
        }
        config.source_acknowledge.mean = kLong;
        if (from_.coin()) {
            draw_cards(config);
        }
        if (from_.coin()) {
            add_flow(config);
        }
        std::vector<NodeIndex> hosts = config.slots;
        std::erase(hosts, NodeIndex::none());
        draw_faults(config, hosts, false);
        auto builders = config.builder_slots.empty() ? config.slots : config.builder_slots;
        std::erase(builders, NodeIndex::none());
        const std::uint64_t meps = 2 * config.meps_per_phase * builders.size();
        return finite<ShiftSystem>(config, meps,
                                   static_cast<base::Bytes>(meps) * sum(config.mfp_bytes));
    }

    std::string daqpipe() {
        DaqpipeSystemConfig config;
        draw(config);
        draw_daqpipe(config, hosts_);
        config.slot = is_tcp_ ? base::Time::zero() : config.slot;
        config.processing = {{.mean = kLong}};
        if (from_.coin()) {
            add_flow(config);
        }
        draw_faults(config, config.readouts, false);
        const std::uint64_t events = std::uint64_t{config.credits} * config.builders.size();
        return finite<DaqpipeSystem>(config, events,
                                     static_cast<base::Bytes>(events) * sum(config.fragment_bytes));
    }

    std::string flows() {
        FlowSystemConfig config;
        draw(config);
        add_flow(config);
        draw_faults(config, config.flow_hosts, false);
        return finite<FlowSystem>(config, 0, 0);
    }

    static base::Bytes sum(const std::vector<base::Bytes>& sizes) {
        return std::accumulate(sizes.begin(), sizes.end(), base::Bytes{0});
    }
    static bool adds_up(const PullReport& report) {
        return report.events_arrived ==
               report.events_built + report.events_in_flight + report.events_waiting;
    }
    template <class System, class Config>
    std::string finite(const Config& config, std::uint64_t to_do, base::Bytes bytes) {
        auto made = System::make(config);
        if (!made) {
            return refused(made.error());
        }
        System& system = **made;
        Outcome outcome;
        outcome.to_do = to_do;
        run(system, any_time(base::microseconds(2'000)), 3, outcome);
        run(system, config.duration, 1, outcome);
        take_down(system, outcome);
        const EventCounts built = built_by(system);
        if constexpr (std::is_same_v<System, PullSystem>) {
            if (!adds_up(system.report()) && outcome.broken.empty()) {
                return "not every event that came is built, under way or waiting";
            }
        }
        outcome.done = built.events;
        for (const FlowCount& flow : system.flows().counted()) {
            outcome.done += flow.messages + flow.lost;
            outcome.to_do += config.flows.front().messages * hosts_;
        }
        if (!outcome.broken.empty()) {
            return outcome.broken;
        }
        if (built.events > to_do || outcome.done > outcome.to_do ||
            (built.events == to_do && built.bytes != bytes)) {
            return fmt::format("{} of {} events are built, of {} B in place of {}, {} of {} done",
                               built.events, to_do, built.bytes, bytes, outcome.done,
                               outcome.to_do);
        }
        if (outcome.done == outcome.to_do) {
            ++all_.done;
            return {};
        }
        const bool has_lost = !retries_ && outcome.cut + outcome.drops + outcome.overtaken > 0;
        if (whole_from_ != base::Time::never() && outcome.failed == 0 && !outcome.has_circle &&
            !has_lost) {
            return fmt::format("{} of {} are done, and nothing is named that hinders it",
                               outcome.done, outcome.to_do);
        }
        ++all_.excused;
        return {};
    }

    template <class System>
    void take_down(System& system, Outcome& outcome) {
        count(system, outcome);
        all_.lossy += outcome.cut + outcome.drops + outcome.resent > 0 ? 1 : 0;
        all_.failed += outcome.failed;
        all_.circles += outcome.has_circle ? 1 : 0;
    }
    std::string refused(const base::Error& error) {
        ++all_.refused;
        return error.cause == base::Cause::input ? std::string() : error.message;
    }

    // ---- parts of units

    void draw_pull(PullSystemConfig& config, std::uint32_t hosts) {
        const std::uint32_t readouts = number(1, std::max(hosts, 2U) - 1);
        const bool is_folded = from_.coin() || hosts == 1;
        for (std::uint32_t host = 0; host < hosts; ++host) {
            if (host < readouts) {
                config.readouts.emplace_back(host);
            }
            if (host >= readouts || is_folded) {
                config.builders.emplace_back(host);
            }
        }
        config.event_size.mean = from_.number(readouts, 60'000);
        config.assignment = static_cast<protocol::Assignment>(from_.byte() % 3);
        config.concurrent_events = number(1, 8);
        config.outstanding_fragments = number(0, 9);
        config.request_size = from_.number(1, 300);
        config.manager_is_networked = from_.coin();
        config.response = any_delay();
        if (from_.coin()) {
            config.processing.push_back(any_delay());
        }
        config.builder_cost_per_message = base::nanoseconds(from_.one_of({0, 0, 1'000}));
    }

    void draw_shift(ShiftSystemConfig& config, std::uint32_t hosts) {
        for (std::uint32_t host = 0; host < hosts; ++host) {
            config.slots.emplace_back(host);
        }
        if (hosts > 2 && from_.byte() % 4 == 0) {
            config.slots[from_.byte() % hosts] = NodeIndex::none();
        }
        config.streams = number(1, 2);
        const auto readouts = static_cast<std::size_t>(std::ranges::count_if(
            config.slots, [](auto each) { return each != NodeIndex::none(); }));
        for (std::size_t i = 0; i < readouts * config.streams; ++i) {
            config.mfp_bytes.push_back(from_.number(1, 8'000));
        }
        if (from_.byte() % 4 == 0) {
            config.builder_slots = config.slots;
            std::ranges::reverse(config.builder_slots);
        }
        config.meps_per_phase = number(1, 2);
        config.barrier =
            from_.one_of({protocol::ShiftBarrier::none, protocol::ShiftBarrier::centralised,
                          protocol::ShiftBarrier::tournament, protocol::ShiftBarrier::dissemination,
                          protocol::ShiftBarrier::external, protocol::ShiftBarrier::neighbour});
        config.phase_jitter = any_delay();
        config.keeps_dummies = from_.coin();
    }

    /// Draws readout cards, some of which stop.
    void draw_cards(ShiftSystemConfig& config) {
        config.mfp_interval = base::nanoseconds(from_.number(100, 5'000));
        config.card_buffer = from_.number(8'000, 40'000);
        const auto units = config.mfp_bytes.size() / config.streams;
        for (std::uint32_t stops = number(0, 2); stops > 0; --stops) {
            const base::Time begin = any_time(base::microseconds(500));
            config.card_stops.push_back({protocol::ReadoutIndex(from_.byte() % units), begin,
                                         begin + base::microseconds(from_.number(1, 1'500))});
            whole_from_ = std::max(whole_from_, config.card_stops.back().end);
        }
    }

    void draw_daqpipe(DaqpipeSystemConfig& config, std::uint32_t hosts) {
        for (std::uint32_t host = 0; host < hosts; ++host) {
            config.readouts.emplace_back(host);
            config.builders.emplace_back(host);
            config.fragment_bytes.push_back(from_.number(1, 8'000));
        }
        if (from_.byte() % 4 == 0) {
            config.builders.resize(number(1, hosts));
        }
        config.is_push = from_.coin();
        config.credits = number(1, 3);
        config.parallel_sends = number(1, 3);
        config.slot = base::microseconds(from_.byte() % 4 == 0 ? from_.number(10, 60) : 0);
    }

    // ---- systems whose units regroup, and build as long as they run

    template <class Config>
    std::uint32_t draw_run(Config& config) {
        draw(config);
        control(config);
        config.run->leased_meps = number(1, 30);
        config.run->moves_apart = from_.coin();
        config.run->restart = from_.byte() % 4 > 0;
        config.keeps_lost_slots = from_.coin();
        config.launch = any_time(base::microseconds(200));
        config.duration = kEnd;
        return hosts_ - (hosts_ > 3 ? number(0, 2) : 0);
    }
    template <class Config>
    void place_spares(Config& config, std::size_t slots, std::uint32_t nodes) {
        config.spare_slots.assign(slots, NodeIndex::none());
        for (std::uint32_t host = nodes; host < hosts_; ++host) {
            config.spare_slots.emplace_back(host);
        }
    }
    [[nodiscard]] std::vector<NodeIndex> hosts() const {
        const base::IndexRange<NodeIndex> all(hosts_);
        return {all.begin(), all.end()};
    }

    std::string shift_regrouping() {
        ShiftSystemConfig config;
        const std::uint32_t nodes = draw_run(config);
        draw_shift(config, nodes);
        config.mfp_interval = base::microseconds(from_.number(40, 150));
        place_spares(config, config.slots.size(), nodes);
        config.slots.resize(config.spare_slots.size(), NodeIndex::none());
        if (!config.builder_slots.empty()) {
            config.builder_slots.resize(config.spare_slots.size(), NodeIndex::none());
        }
        std::vector<NodeIndex> there = config.slots;
        there.insert(there.end(), config.spare_slots.begin(), config.spare_slots.end());
        std::erase(there, NodeIndex::none());
        draw_faults(config, there, true);
        for (std::uint32_t changes = number(0, 2); changes > 0; --changes) {
            ScheduleChange other{.at = any_time(base::microseconds(3'000)),
                                 .slots = config.slots,
                                 .builder_slots = config.builder_slots.empty()
                                                      ? config.slots
                                                      : config.builder_slots};
            std::ranges::rotate(other.slots,
                                other.slots.begin() +
                                    static_cast<std::ptrdiff_t>(from_.byte() % other.slots.size()));
            std::ranges::reverse(other.builder_slots);
            config.schedule_changes.push_back(std::move(other));
        }
        config.fragment_sizes =
            from_.coin() ? protocol::FragmentSizes::poisson : protocol::FragmentSizes::fixed;
        return regrouping<ShiftSystem>(config, config.mfp_interval);
    }

    std::string daqpipe_regrouping() {
        DaqpipeSystemConfig config;
        const std::uint32_t nodes = draw_run(config);
        draw_daqpipe(config, nodes);
        config.event_interval = base::microseconds(from_.number(40, 150));
        place_spares(config, nodes, nodes);
        draw_faults(config, hosts(), true);
        config.fragment_sizes =
            from_.coin() ? protocol::FragmentSizes::poisson : protocol::FragmentSizes::fixed;
        return regrouping<DaqpipeSystem>(config, config.event_interval);
    }

    std::string pull_regrouping() {
        PullSystemConfig config;
        const std::uint32_t nodes = draw_run(config);
        draw_pull(config, nodes);
        const base::Time interval = base::microseconds(from_.number(40, 150));
        config.arrivals.kind = from_.one_of({protocol::ArrivalsConfig::Kind::deterministic,
                                             protocol::ArrivalsConfig::Kind::poisson});
        config.arrivals.rate_hz = 1 / interval.seconds();
        place_spares(config, std::max(config.readouts.size(), config.builders.size()), nodes);
        std::vector<NodeIndex> there = config.spare_slots;
        there.insert(there.end(), config.readouts.begin(), config.readouts.end());
        there.insert(there.end(), config.builders.begin(), config.builders.end());
        std::erase(there, NodeIndex::none());
        draw_faults(config, there, true);
        return regrouping<PullSystem>(config, interval);
    }

    /// A system without faults from `kWhole` on must build between `kLate` and `kEnd`: by then all
    /// units have returned and had a round.
    static constexpr base::Time kWhole = base::milliseconds(4);
    static constexpr base::Time kLate = base::milliseconds(10);
    static constexpr base::Time kEnd = base::milliseconds(14);

    /// `interval`: time between two events or MFPs of the sources.
    template <class System, class Config>
    std::string regrouping(const Config& config, base::Time interval) {
        auto made = System::make(config);
        if (!made) {
            return refused(made.error());
        }
        System& system = **made;
        const RunDriver& run_control = *system.run_control();
        Outcome outcome;
        run(system, any_time(kWhole), 3, outcome);
        run(system, kWhole + base::milliseconds(2), 1, outcome);
        Outcome when_whole;
        count(system, when_whole);
        run(system, kLate, 1, outcome);
        const RunDriver::Accounts before = run_control.accounts();
        run(system, kEnd, 1, outcome);
        const RunDriver::Accounts after = run_control.accounts();
        take_down(system, outcome);
        all_.units_lost += after.units_lost;
        all_.regroupings += after.regroupings;
        if (!outcome.broken.empty()) {
            return outcome.broken;
        }
        if (run_control.control().phase() == protocol::RunPhase::error) {
            ++all_.gave_up;
            return run_control.control().failure().empty() ? "a run ended without a reason"
                                                           : std::string();
        }
        if (after.built + after.incomplete > before.built + before.incomplete) {
            ++all_.came_back;
            return {};
        }
        const bool waits_for_sources =
            interval * before.begun > kLate;  // because MEPs were skipped
        // A retransmission timeout of TCP may be longer than a run.
        if (!is_tcp_ && whole_from_ < kWhole && config.run->restart && retries_ &&
            outcome.failed == when_whole.failed && outcome.drops == when_whole.drops &&
            !outcome.has_circle && !waits_for_sources) {
            return "all is whole again, and the units build nothing";
        }
        ++all_.excused;
        return {};
    }

    base::ByteSource from_;
    AllOutcomes& all_;
    std::uint32_t hosts_ = 0;
    bool retries_ = false;
    bool is_tcp_ = false;
    bool is_ethernet_ = false;
    base::Time whole_from_;
};

}  // namespace daqloom::systems
