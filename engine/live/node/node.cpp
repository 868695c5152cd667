#include "live/node/node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "live/memory/buffer.hpp"
#include "live/memory/clock.hpp"
#include "live/memory/counters.hpp"
#include "live/memory/doorbell.hpp"
#include "live/node/counters_page.hpp"
#include "live/node/ends.hpp"
#include "live/node/epoch/arrival_record.hpp"
#include "live/node/epoch/epoch.hpp"
#include "live/node/epoch/members.hpp"
#include "live/node/epoch/send_queue.hpp"
#include "live/node/epoch/slot_clock.hpp"
#include "live/node/epoch/stage_trace.hpp"
#include "live/node/epoch/unit_config.hpp"
#include "live/transport/make.hpp"
#include "protocol/data/mfp.hpp"

namespace daqloom::live {

namespace {

constexpr std::uint32_t kMostUnits = 65'536;
/// Wait for the consumer after the epoch has drained; afterwards the next epoch gets a new buffer.
constexpr base::Time kHaltWait = base::seconds(1);

}  // namespace

base::expected<void> Node::check(const NodeConfig& given) {
    DAQLOOM_TRY(config, with_pieces(given));
    const std::size_t units = config.slots.units();
    DAQLOOM_REFUSE_IF(units > kMostUnits, "unit {} in a slot; give 0 to {}", units - 1,
                      kMostUnits - 1);
    DAQLOOM_CHECK(live::check(config.tcp, units));
    DAQLOOM_REFUSE_IF(config.streams < 1 || config.streams > most_streams,
                      "{} streams; give 1 to {}", config.streams, most_streams);
    DAQLOOM_REFUSE_IF(config.output_alignment < 64 || config.output_alignment > (2 << 20) ||
                          !std::has_single_bit(static_cast<std::uint64_t>(config.output_alignment)),
                      "output_alignment of {} bytes; give a power of two from 64 to 2097152",
                      config.output_alignment);
    DAQLOOM_REFUSE_IF(has_cards(config) && config.event_rate_hz <= 0,
                      "card_buffer of {} bytes without an event rate; set event.rate",
                      config.card_buffer);
    DAQLOOM_CHECK(check_epoch(config));
    const std::uint32_t readouts = units_in(config.slots.readouts);
    DAQLOOM_REFUSE_IF(config.fragment_bytes.size() != std::size_t{readouts} * config.streams,
                      "{} sizes of fragments for {} readout units with {} "
                      "streams; give one for each stream",
                      config.fragment_bytes.size(), readouts, config.streams);
    DAQLOOM_REFUSE_IF(config.packing < 1 || config.packing > protocol::most_mfp_fragments,
                      "packing of {}; give 1 to 65535", config.packing);
    return {};
}

struct Node::Parts {
    /// The data flow of one epoch. All objects that it refers to must outlive it.
    struct Flow {
        ~Flow() { end(); }

        void end() {
            if (thread.joinable()) {
                halt.abandon();
                doorbell->ring();
                thread.join();
            }
        }

        const Doorbell* doorbell = nullptr;
        std::unique_ptr<Transport> transport;
        std::unique_ptr<Epoch> epoch;
        Halt halt;
        std::thread thread;
    };

    Parts(NodeConfig given, Doorbell bell, CountersPage counted)
        : config(std::move(given)),
          doorbell(std::move(bell)),
          page(std::move(counted)),
          trace(config.trace_stages),
          arrivals(config.trace_arrivals) {}

    base::expected<void> make_ends(protocol::ReadoutIndex reads_out, bool builds);
    void end_flow();
    [[nodiscard]] TransportConfig transport_config();
    [[nodiscard]] base::Time next_round() const;

    NodeConfig config;
    Doorbell doorbell;
    CountersPage page;
    NodeCounters& counters = page.counters();
    StageTrace trace;
    ArrivalRecord arrivals;
    base::Time began = now();
    base::Time began_cpu = processor_time();
    Lease lease;
    Ends ends{counters};
    std::uint32_t epoch = 0;
    base::Time unanswered;  ///< Epoch::unanswered of the last epoch
    std::optional<Members> members;
    /// Whether the next epoch needs a new output buffer, because a member that did not drain may
    /// still write to this one, or because the consumer has not processed everything.
    bool is_output_spoilt = false;
    mutable std::mutex mutex;   ///< guards the members below, which other threads read
    TransportCounters earlier;  ///< sums of the epochs before this one
    std::unique_ptr<Flow> flow;
};

base::expected<std::unique_ptr<Node>> Node::make(NodeConfig config) {
    DAQLOOM_CHECK(check(config));
    DAQLOOM_TRY(settled, with_pieces(std::move(config)));
    DAQLOOM_TRY(doorbell, Doorbell::create());
    DAQLOOM_TRY(page, CountersPage::create(settled.run, settled.self, settled.counters_folder));
    auto parts = std::make_unique<Parts>(std::move(settled), std::move(doorbell), std::move(page));
    const protocol::RunSlots& slots = parts->config.slots;
    const UnitIndex self = parts->config.self;
    const auto numbers = slots.readout_numbers();
    const auto is_in = [&](const std::vector<UnitIndex>& units) {
        return std::ranges::find(units, self) != units.end();
    };
    DAQLOOM_REFUSE_IF(!is_in(slots.readouts) && !is_in(slots.builders) && !is_in(slots.spares),
                      "unit {} has no slot; give it a readout unit, a builder unit or both, or "
                      "make it a spare",
                      self.value());
    if (is_in(slots.spares)) {  // warm spare: its memory is allocated in advance
        DAQLOOM_CHECK(parts->ends.make_streams(parts->config, parts->doorbell));
        DAQLOOM_CHECK(parts->ends.renew_output(parts->config, parts->doorbell));
    }
    DAQLOOM_CHECK(parts->make_ends(numbers[self], is_in(slots.builders)));
    return std::unique_ptr<Node>(new Node(std::move(parts)));
}

Node::Node(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Node::~Node() { shut(); }

/// Makes sources for readout unit `reads_out` of the run and an output, unless they exist.
base::expected<void> Node::Parts::make_ends(protocol::ReadoutIndex reads_out, bool builds) {
    if (reads_out != protocol::ReadoutIndex::none() && reads_out != ends.reads_out()) {
        DAQLOOM_CHECK(ends.make_sources(config, reads_out, doorbell));
    }
    const bool makes = builds && ends.output() == nullptr;
    return makes ? ends.renew_output(config, doorbell) : base::expected<void>{};
}

void Node::Parts::end_flow() {
    const std::lock_guard lock(mutex);
    if (!flow) {
        return;
    }
    TransportCounters::each([&](const char*, auto counter, const char*) {
        earlier.*counter += flow->transport->counters().*counter;
    });
    flow->end();
    unanswered = flow->epoch ? flow->epoch->unanswered() : unanswered;
    flow.reset();
}

TransportConfig Node::Parts::transport_config() {
    TransportConfig made{.self = config.self,
                         .units = static_cast<std::uint32_t>(config.slots.units()),
                         .token = config.token,
                         .epoch = epoch,
                         .arena = ends.output() == nullptr ? nullptr : &ends.output()->area(),
                         .sources = {},
                         .doorbell = &doorbell,
                         .waiting = config.waiting};
    if (config.protocol == Protocol::shift && config.barrier == protocol::ShiftBarrier::network) {
        made.barrier = units_at_barrier(config, *members);
    }
    for (Buffer& stream : ends.streams()) {
        made.sources.emplace_back(stream.area().bytes());
    }
    return made;
}

/// Start of the next round of phases by time. Rounds are counted from 1970, so that units agree on
/// the phase within the accuracy of their clocks, but perhaps not on the first round.
base::Time Node::Parts::next_round() const {
    const auto rounds = SlotClock::of_this_machine(config.window * members->shift.phases());
    return rounds.begin_of(rounds.slot_at(now()) + 1);
}

base::expected<std::vector<std::byte>> Node::prepare(std::uint32_t epoch,
                                                     std::span<const UnitIndex> members,
                                                     std::span<const protocol::RoleHolders> moved,
                                                     std::vector<UnitIndex> readouts,
                                                     std::vector<UnitIndex> builders) {
    Parts& node = *parts_;
    const protocol::RunSlots& own = node.config.slots;
    DAQLOOM_TRY(slots, readouts.empty() ? base::expected<protocol::RunSlots>(own)
                                        : own.rearranged(std::move(readouts), std::move(builders)));
    node.ends.stop_sources();
    node.end_flow();
    DAQLOOM_TRY(found, Members::of(slots, members, moved));
    node.members.emplace(std::move(found));
    node.epoch = epoch;
    if (std::exchange(node.is_output_spoilt, false) && node.ends.output() != nullptr) {
        DAQLOOM_CHECK(node.ends.renew_output(node.config, node.doorbell));
    }
    const UnitIndex self = node.config.self;
    DAQLOOM_CHECK(node.make_ends(node.members->reads_out(self), node.members->builds(self)));
    TcpConfig tcp = node.config.tcp;
    tcp.node = node.config.bind;
    tcp.domain = node.config.domain;
    DAQLOOM_TRY(transport, make_transport(node.config.transport, node.transport_config(), tcp));
    auto flow = std::make_unique<Parts::Flow>();
    flow->doorbell = &node.doorbell;
    flow->transport = std::move(transport);
    std::vector<std::byte> address = flow->transport->address();
    const std::lock_guard lock(node.mutex);
    node.flow = std::move(flow);
    return address;
}

base::expected<std::vector<UnitIndex>> Node::connect(std::span<const Transport::Peer> peers,
                                                     base::Time timeout) {
    DAQLOOM_REFUSE_IF(!parts_->flow || parts_->flow->epoch,
                      "an epoch is connected once, after it was prepared");
    return parts_->flow->transport->connect(peers, now() + timeout);
}

base::expected<void> Node::start(std::uint64_t first_mep) {
    Parts& node = *parts_;
    DAQLOOM_REFUSE_IF(!node.flow || node.flow->epoch,
                      "an epoch is started once, after it was prepared and connected");
    Parts::Flow& flow = *node.flow;
    DAQLOOM_TRY(epoch, make_epoch({.config = &node.config,
                                   .transport = flow.transport.get(),
                                   .streams = node.ends.streams(),
                                   .output = node.ends.output(),
                                   .tap = node.ends.tap(),
                                   .counters = &node.counters,
                                   .trace = &node.trace,
                                   .arrivals = &node.arrivals,
                                   .epoch = node.epoch,
                                   .first_mep = first_mep,
                                   .start = node.next_round(),
                                   .unanswered = node.unanswered},
                                  *node.members));
    flow.epoch = std::move(epoch);
    node.is_output_spoilt = true;  // until it has drained with all members
    if (node.members->reads_out(node.config.self) != protocol::ReadoutIndex::none()) {
        node.ends.start_sources(first_mep);
    }
    flow.thread = std::thread([&flow, &node] {
        run_epoch(*flow.epoch, *flow.transport, node.counters, node.lease, flow.halt);
    });
    return {};
}

void Node::close(std::span<const UnitIndex> lost) {
    if (parts_->flow && parts_->flow->epoch) {
        parts_->flow->halt.close(lost);
        parts_->doorbell.ring();
    }
}

std::optional<std::uint64_t> Node::drain(base::Time wait_until, base::Time until) {
    Parts& node = *parts_;
    if (!node.flow || !node.flow->epoch) {
        return 0;
    }
    Halt::State state = node.flow->halt.wait(false, wait_until);
    if (!state.is_drained && wait_until < until) {
        return {};
    }
    node.ends.stop_sources();  // only now: a builder unit may have requested later MFPs
    if (!state.is_drained) {
        return {};
    }
    state = node.flow->halt.wait(true, std::min(until, now() + kHaltWait));
    node.is_output_spoilt = !node.flow->halt.lost().empty() || !state.is_consumed;
    return state.next_mep;
}

void Node::shut() {
    parts_->ends.stop_sources();
    parts_->end_flow();
    parts_->ends.shut();
    parts_->page.withdraw();  // the next node of this process has a page of the same name
}

void Node::lease(std::uint64_t mep_end, base::Time until, std::uint64_t beat) {
    parts_->lease.set(mep_end, until, beat);
    parts_->doorbell.ring();  // the data thread may have waited for this
}

std::vector<UnitIndex> Node::suspects() const {
    const std::lock_guard lock(parts_->mutex);
    return parts_->flow ? parts_->flow->halt.state().suspects : std::vector<UnitIndex>();
}

std::vector<StageRecord> Node::take_stages() { return parts_->trace.take(); }

ArrivalRecord::Arrivals Node::take_arrivals() { return parts_->arrivals.take(); }

std::vector<ConnectionCounts> Node::connections() const {
    const std::lock_guard lock(parts_->mutex);
    return parts_->flow ? parts_->flow->transport->connections() : std::vector<ConnectionCounts>();
}

void Node::each_counter(const SeeCount& see) const {
    see_counters(parts_->counters, see);
    parts_->ends.each_count(see);
    see(counter_names::kElapsed.name, static_cast<std::uint64_t>((now() - parts_->began).ps));
    see(counter_names::kCpu.name,
        static_cast<std::uint64_t>((processor_time() - parts_->began_cpu).ps));
    const std::lock_guard lock(parts_->mutex);
    TransportCounters::each([&](const char* name, auto counter, const char*) {
        const std::uint64_t here =
            parts_->flow ? (parts_->flow->transport->counters().*counter).get() : 0;
        see(fmt::format("{}{}", counter_names::kTransport, name), parts_->earlier.*counter + here);
    });
}

}  // namespace daqloom::live
