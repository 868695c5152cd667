// Links and switches, and the path of a frame through them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/expected.hpp"
#include "base/index.hpp"
#include "base/pool.hpp"
#include "base/random.hpp"
#include "base/units.hpp"
#include "ethernet/fifo_port.hpp"
#include "ethernet/frame.hpp"
#include "ethernet/host_jitter.hpp"
#include "ethernet/link.hpp"
#include "ethernet/network_config.hpp"
#include "ethernet/report.hpp"
#include "ethernet/sack_blocks.hpp"
#include "ethernet/scheduled_port.hpp"
#include "ethernet/software_switch.hpp"
#include "ethernet/switch_buffer.hpp"
#include "network/graph.hpp"
#include "network/rerouting.hpp"
#include "sim/event_queue.hpp"
#include "sim/time_series.hpp"

namespace daqloom::ethernet {

/// Kinds of event that the network schedules; the owner of the event queue passes due events back.
enum NetworkEvent : std::uint32_t {
    kDelivery = 0,  ///< index: link
    kPortFree = 1,  ///< index: link whose ScheduledPort may send the next frame, or kCores + core
    kFirstHostEvent = 2,
};

/// SACK blocks of frames under way; a frame contains the number of its slot in this pool.
using SackPool = base::Pool<SackBlocks>;

/// An observer of single frames, for captures and timelines. Without observer there is no cost.
class Observer {
  public:
    virtual ~Observer() = default;
    virtual void on_delivery(LinkIndex link, const Frame& frame, base::Time now) = 0;
    virtual void on_drop(LinkIndex link, const Frame& frame, base::Time now) = 0;
};

/// Observer of frames that will not arrive.
class LossObserver {
  public:
    virtual ~LossObserver() = default;
    virtual void on_frame_lost(const Frame& frame, base::Time now) = 0;
};

class Network {
  public:
    explicit Network(sim::EventQueue& events) : events_(events) {}

    /// Builds the network of a graph, for frames of at most `frame` bytes.
    base::expected<void> build(const NetworkConfig& config, base::Bytes frame);
    /// Time of one frame of `bytes` from host to host without other traffic.
    [[nodiscard]] base::Time empty_latency(NodeIndex from, NodeIndex to, base::Bytes bytes) const;
    /// Link by which a host of the graph sends.
    [[nodiscard]] LinkIndex host_link(NodeIndex host) const { return host_links_[host]; }

    // ---- building a network by calls, in this order: switches, links, routes
    SwitchIndex add_switch(const SwitchConfig& config, std::uint32_t ports);
    LinkIndex add_link(const LinkConfig& config, const Wiring& wiring, std::string name);
    /// Sends frames for `host` from a switch over one of these links, selected by `link_of_flow`.
    void route(SwitchIndex at, NodeIndex host, std::span<const LinkIndex> links);
    /// Makes the software switches; called after all switches, links and routes have been added.
    void start_software_switches();
    void inject_loss(const LossConfig& loss, base::RandomStream random);
    void observe(Observer* observer) {
        observer_ = observer;
        watched_ = true;
    }
    void observe_losses(LossObserver* observer) { loss_observer_ = observer; }
    /// Starts counting. Occupancies are recorded in [now, end), in `bins` bins.
    void begin_counting(base::Time now, base::Time end, std::size_t bins);
    /// Counts since counting began; empty before.
    [[nodiscard]] Report report(base::Time now);
    /// Frames delivered in the whole run; a frame counts once for each link. `ack_hops` counts only
    /// frames without payload.
    [[nodiscard]] std::uint64_t packet_hops() const;
    /// Memory of frames (B).
    [[nodiscard]] std::size_t memory() const;
    [[nodiscard]] std::uint64_t ack_hops() const;
    /// Starts recording buffer occupancy in [now, end), in `bins` bins.
    void record_occupancy(base::Time now, base::Time end, std::size_t bins);
    /// Records the exact occupancy of this moment; without samples, only maxima are recorded.
    /// Schedules the next sample, one bin later, as an event of `kind`.
    void sample_occupancy(base::Time now, std::uint32_t kind);
    void finish_recording(base::Time now);
    /// Whether a sample is due.
    [[nodiscard]] bool is_sampling() const { return before_.has_value(); }

    /// Queues a frame of `bytes` on a host's link and returns it. Only its `at` is filled in, with
    /// Time::never() for a frame that waits in a ScheduledPort.
    Frame& append(LinkIndex link, TrafficClass traffic_class, base::Bytes bytes, base::Time now) {
        sent_bytes_ += bytes;
        FifoPort& port = ports_[link];
        return port.is_scheduled() ? append_scheduled(link, traffic_class, 0, bytes, now)
               : jitters_.empty()  ? append(port, link, bytes, now)
                                   : append_late(port, link, bytes, now);
    }

    /// Delivers the first frame of a link to the next link, or to `hosts.receive(frame)` if the
    /// link ends at a host. `hosts.expect(frame)` announces a frame that a host will soon receive.
    template <class Hosts>
    void on_delivery(LinkIndex index, base::Time now, Hosts&& hosts) {
        FifoPort& link = ports_[index];
        Frame frame = link.head();
        const bool held = link.deliver();
        if (!link.empty()) {
            events_.push({link.next_delivery(), kDelivery, index.value()});
        }
        const Wiring wiring = link.wiring();
        if (held && !wiring.from_host()) {
            switches_[wiring.from_switch].buffer.release(wiring.from_port, frame.bytes);
        }
        if (watched_ && !watch(index, frame, now)) [[unlikely]] {
            return;
        }
        if (wiring.to_host()) {
            if (!link.empty()) {
                hosts.expect(link.head());
            }
            hosts.receive(frame);
        } else {
            const FifoPort* const out = forward(wiring.to_switch, wiring.to_port, frame, now);
            if (out != nullptr && out->wiring().to_host() && out->size() == 1) {
                hosts.expect(frame);
            }
        }
    }

    /// Prefetches the link of the next delivery: among a hundred links, each one leaves the
    /// first-level cache between two of its frames.
    void prefetch(LinkIndex index) const { __builtin_prefetch(&ports_[index]); }

    /// Applies a change to a link, which must have been built with `changes`.
    void apply(const LinkChange& change);
    /// Schedules the changes of links and tables in the graph. Each is an event of `kind`; the
    /// caller must pass the index of a due event to `on_change`.
    void plan_changes(std::uint32_t kind);
    void on_change(std::uint32_t index);
    /// Whether links or tables change during the run.
    [[nodiscard]] bool changes() const { return !changes_.empty() || !reroutings_.empty(); }

    /// Lets a free port send; returns the frame that begins, or null. Valid until the next call.
    const Frame* on_port_free(LinkIndex index, base::Time now);

    [[nodiscard]] SackPool& sacks() { return sacks_; }
    [[nodiscard]] const SackPool& sacks() const { return sacks_; }
    [[nodiscard]] const FifoPort& port(LinkIndex link) const { return ports_[link]; }
    /// ScheduledPort of a link; null if frames leave the link in order of arrival.
    [[nodiscard]] const ScheduledPort* scheduler(LinkIndex link) const {
        return ports_[link].is_scheduled() ? schedulers_[link].get() : nullptr;
    }
    [[nodiscard]] const std::string& link_name(LinkIndex index) const { return names_[index]; }
    [[nodiscard]] base::IndexRange<SwitchIndex> switches() const { return switches_.indices(); }
    [[nodiscard]] base::IndexRange<LinkIndex> links() const { return ports_.indices(); }
    [[nodiscard]] const SwitchBuffer& buffer(SwitchIndex index) const {
        return switches_[index].buffer;
    }
    [[nodiscard]] const std::optional<sim::TimeSeries>& occupancy(SwitchIndex index) const {
        return switches_[index].occupancy;
    }
    /// Buffer size that would just have admitted the same frames, with shared memory.
    [[nodiscard]] const std::optional<sim::TimeSeries>& least_buffer(SwitchIndex index) const {
        return switches_[index].least_buffer;
    }
    /// Exact number of bytes held by a switch at `now`.
    [[nodiscard]] base::Bytes settled_occupancy(SwitchIndex index, base::Time now);
    /// Frames that a switch dropped on their way to this link.
    [[nodiscard]] std::uint64_t link_drops(LinkIndex index) const;
    [[nodiscard]] std::uint64_t injected_losses() const { return lost_frames_; }
    /// Frames lost on a wire because the link went down, or because of bit errors.
    [[nodiscard]] std::uint64_t cut_frames() const { return cut_frames_; }
    [[nodiscard]] std::uint64_t marks() const { return marks_; }
    [[nodiscard]] std::uint64_t pauses() const { return pauses_; }
    /// Software switch with this number; null for any other kind of switch.
    [[nodiscard]] const SoftwareSwitch* software(SwitchIndex index) const {
        return software_.contains(index) ? software_[index].itself.get() : nullptr;
    }
    /// Frames for which a switch had no route.
    [[nodiscard]] std::uint64_t unrouted() const { return unrouted_frames_; }

    /// Checks, by counting all frames again: bytes entered at hosts = delivered to hosts + in
    /// queues and on wires + dropped; cells taken = cells freed + held. If not, returns a sentence
    /// with the difference.
    [[nodiscard]] base::expected<void> check_conservation() const;

  private:
    /// Bit of a route that leads to a group of links, or to none. Without this bit a route is one
    /// link, so that most frames need one look-up only.
    static constexpr std::uint32_t kGroups = std::uint32_t{1} << 31;
    /// Bit in an event's index: the index is a core of a software switch that begins a turn.
    static constexpr std::uint32_t kCores = std::uint32_t{1} << 31;
    /// Bits in an event's index: a pause frame has arrived that stops or restarts this link.
    static constexpr std::uint32_t kHolds = std::uint32_t{1} << 30;
    static constexpr std::uint32_t kGoesOn = std::uint32_t{1} << 29;

    struct SwitchNode {
        SwitchNode(const SwitchConfig& config, std::uint32_t ports)
            : buffer(config, ports),
              takes_all(config.model == BufferModel::infinite && config.ecn_threshold == 0),
              is_software(config.model == BufferModel::software),
              port_links(ports, LinkIndex::none()),
              groups(1) {}

        SwitchBuffer buffer;
        bool takes_all;  ///< neither drops nor marks
        bool is_software;
        std::vector<LinkIndex> port_links;
        base::Table<NodeIndex, std::uint32_t> routes;  ///< by destination host
        std::vector<std::vector<LinkIndex>> groups;    ///< the first is empty: no route
        std::optional<sim::TimeSeries> occupancy;
        std::optional<sim::TimeSeries> least_buffer;  ///< shared memory only
    };

    /// Forwards a frame at a switch. Returns the link selected for the frame, even if the frame was
    /// dropped; null without a route. Always inlined: most time of a simulation is spent here.
    [[gnu::always_inline]] const FifoPort* forward(SwitchIndex at, std::uint16_t input,
                                                   Frame& frame, base::Time now) {
        SwitchNode& node = switches_[at];
        const std::uint32_t route = node.routes[frame.destination()];
        const LinkIndex out =
            route < kGroups ? LinkIndex(route) : pick(node, route - kGroups, frame, now);
        if (out == LinkIndex::none()) [[unlikely]] {
            return nullptr;
        }
        FifoPort& link = ports_[out];
        const std::uint16_t port = link.wiring().from_port;
        if (!node.takes_all) {
            if (node.is_software) [[unlikely]] {
                receive(at, input, out, frame, now);
                return nullptr;
            }
            if (!admit(node, port, input, out, frame, now)) {
                return &link;
            }
        }
        node.buffer.charge(port, frame.bytes);
        if (link.is_scheduled()) {
            send_scheduled(out, input, frame, now);
        } else {
            send(link, out, frame, now);
        }
        if (node.occupancy) {
            record_if_raised(node, now);
        }
        if (node.least_buffer) {
            record_least_buffer(node, port, frame.bytes, now);
        }
        return &link;
    }

    /// Selects one link of a group; a frame without a route is lost. Not inlined, so that the code
    /// for most frames is short enough to be inlined.
    LinkIndex pick(const SwitchNode& node, std::uint32_t group, const Frame& frame, base::Time now);
    void set_routes(const std::vector<network::Route>& forwarding,
                    const std::vector<network::PortGroup>& groups);
    [[nodiscard]] Report totals() const;
    static std::uint32_t route_by(SwitchNode& node, std::span<const LinkIndex> links);

    /// Admits a frame to the buffer, and marks it if the ECN threshold is exceeded; or drops it.
    bool admit(SwitchNode& node, std::uint16_t port, std::uint16_t input, LinkIndex out,
               Frame& frame, base::Time now) {
        if (!node.buffer.fits(port, frame.bytes)) [[unlikely]] {
            settle(node, now);
            if (!node.buffer.fits(port, frame.bytes)) {
                drop(node, port, out, frame, now);
                return false;
            }
        }
        if (ports_[out].is_scheduled() &&
            !schedulers_[out]->accepts(frame.traffic_class(), input, frame.bytes)) {
            drop(node, port, out, frame, now);
            return false;
        }
        if (node.buffer.config().ecn_threshold != 0) [[unlikely]] {
            mark(node, port, frame, now);
        }
        return true;
    }

    /// Records the occupancy of a switch if it may be a new maximum. Its counters are updated
    /// lazily (see SwitchBuffer): they are an upper bound, and are brought up to date only when
    /// that bound exceeds a maximum. The peak is exact; the maximum of a bin may be low by 1/256 of
    /// the peak, so that not every frame of a rising edge updates the counters.
    void record_if_raised(SwitchNode& node, base::Time now) {
        const base::Bytes held = node.buffer.held();
        const base::Bytes peak = node.occupancy->peak().value;
        if (held > peak || node.occupancy->would_raise(now, held - peak / 256)) [[unlikely]] {
            settle(node, now);
            node.occupancy->set(now, node.buffer.held());
        }
    }

    /// Records the least buffer size that admits a frame, if it may be a maximum; then zero.
    void record_least_buffer(SwitchNode& node, std::uint16_t port, base::Bytes frame,
                             base::Time now) {
        sim::TimeSeries& least = *node.least_buffer;
        const base::Bytes bound = node.buffer.memory().least_buffer(port, frame);
        const base::Bytes peak = least.peak().value;
        if (bound > peak || least.would_raise(now, bound - peak / 256)) [[unlikely]] {
            settle(node, now);
            least.set(now, node.buffer.memory().least_buffer(port, frame));
            least.set(now, 0);
        }
    }

    Frame& append(FifoPort& port, LinkIndex index, base::Bytes bytes, base::Time now) {
        Frame& frame = port.append(bytes, now);
        if (port.size() == 1) {
            events_.push({frame.at, kDelivery, index.value()});
        }
        return frame;
    }

    /// Appends a frame of a host, with jitter.
    Frame& append_late(FifoPort& port, LinkIndex index, base::Bytes bytes, base::Time now);

    /// Sends an admitted frame on.
    void send(FifoPort& port, LinkIndex index, const Frame& frame, base::Time now) {
        fill(append(port, index, frame.bytes, now), frame);
    }
    static void fill(Frame& place, const Frame& frame) {
        const base::Time at = place.at;
        place = frame;
        place.at = at;
    }

    // ---- links with a ScheduledPort; not inlined, so that the code for other frames stays short
    void schedule(LinkIndex link, const ScheduledPortConfig& config);
    Frame& append_scheduled(LinkIndex link, TrafficClass traffic_class, std::uint16_t input,
                            base::Bytes bytes, base::Time now);
    void send_scheduled(LinkIndex link, std::uint16_t input, const Frame& frame, base::Time now);
    Frame& begin_scheduled(LinkIndex link, TrafficClass traffic_class, base::Bytes bytes,
                           base::Time now);
    void wake(LinkIndex link, base::Time now);

    // ---- software switches; not inlined, so that the code for other frames stays short
    struct AroundSwitch;
    void receive(SwitchIndex at, std::uint16_t input, LinkIndex out, const Frame& frame,
                 base::Time now);
    void wake_switch(SwitchIndex at, std::uint32_t core, base::Time when);
    void on_switch_turn(std::uint32_t core, base::Time now);
    [[nodiscard]] bool may_be_paused(const Wiring& wiring) const {
        return !wiring.to_host() &&
               switches_[wiring.to_switch].buffer.config().software.pause_at > 0;
    }
    void send_pause(LinkIndex back, bool on, base::Time now);
    void on_pause(LinkIndex link, bool on, base::Time now);

    void settle_port(SwitchNode& node, std::uint32_t port, base::Time now) {
        if (node.port_links[port] == LinkIndex::none()) {
            return;
        }
        ports_[node.port_links[port]].release_departed(
            now, [&](const Frame& frame) { node.buffer.release(port, frame.bytes); });
    }
    void settle(SwitchNode& node, base::Time now);
    void mark(SwitchNode& node, std::uint32_t port, Frame& frame, base::Time now);
    void drop(SwitchNode& node, std::uint32_t port, LinkIndex out, const Frame& frame,
              base::Time now);
    void drop_waiting(LinkIndex link, base::Time now);
    void lose(LinkIndex link, const Frame& frame, base::Time now);
    void forget(const Frame& frame, base::Time now);
    bool watch(LinkIndex index, const Frame& frame, base::Time now);

    struct InjectedLoss {
        LossConfig config;
        base::RandomStream random;
        std::uint64_t frames = 0;
    };

    sim::EventQueue& events_;
    base::Table<LinkIndex, FifoPort> ports_;
    base::Table<LinkIndex, std::unique_ptr<ScheduledPort>> schedulers_;  ///< null for other links
    base::Bytes quantum_ = ScheduledPortConfig{}.quantum;
    struct SwitchCores {
        std::unique_ptr<SoftwareSwitch> itself;  ///< null: not a software switch
        std::uint32_t first = 0;                 ///< its first core among those of all switches
    };
    base::Table<SwitchIndex, SwitchCores> software_;
    std::vector<SwitchIndex> switch_of_core_;
    base::Table<SwitchIndex, SwitchNode> switches_;
    bool watched_ = false;  ///< whether an observer or losses need every frame
    Observer* observer_ = nullptr;
    LossObserver* loss_observer_ = nullptr;
    SackPool sacks_;
    std::vector<InjectedLoss> losses_;
    std::vector<LinkChange> changes_;
    base::Table<LinkIndex, double> bit_errors_;  ///< by link; empty without bit errors
    base::RandomStream errors_{0, ""};
    std::vector<network::Rerouting> reroutings_;
    base::Table<LinkIndex, std::string> names_;
    base::Bytes sent_bytes_ = 0;     ///< sent by hosts
    std::uint64_t lost_frames_ = 0;  ///< injected losses
    std::uint64_t cut_frames_ = 0;
    base::Bytes lost_bytes_ = 0;  ///< of injected and of cut frames
    base::Bytes lost_at_hosts_ = 0;
    std::uint64_t marks_ = 0;
    std::uint64_t pauses_ = 0;
    std::uint64_t unrouted_frames_ = 0;
    base::Bytes unrouted_bytes_ = 0;
    base::Table<NodeIndex, LinkIndex> host_links_;
    base::Table<LinkIndex, std::optional<HostJitter>> jitters_;  ///< empty without jitter
    std::optional<Report> before_;                               ///< counts when counting began
};

}  // namespace daqloom::ethernet
