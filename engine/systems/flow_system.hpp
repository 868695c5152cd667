// Flows: RDMA writes that follow no event building, as load generators and benchmarks of networks
// post them.
//
// A source of a flow posts its messages one by one when they are due, if fewer than `outstanding`
// of them await completion; otherwise it posts the next when one completes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/expected.hpp"
#include "base/random.hpp"
#include "base/units.hpp"
#include "sim/histogram.hpp"

#include "systems/system.hpp"

namespace daqloom::systems {

struct Flow {
    /// As destination: any of the other nodes, drawn anew for each message.
    static constexpr std::uint32_t kAnyOther = ~std::uint32_t{0};

    std::string name;                    ///< what its sources draw depends on it
    std::vector<std::uint32_t> sources;  ///< nodes
    std::uint32_t destination = kAnyOther;
    ServiceLevel service_level = 0;
    base::Bytes bytes = 0;       ///< of a message
    std::uint64_t messages = 0;  ///< of each source; 0: without end
    base::Time start;
    /// From one message to the next, mean; zero: as soon as there is room.
    base::Time interval;
    /// Share of the source's wire that messages take, headers included, in place of `interval`;
    /// 0 … 1, 0: `interval` counts.
    double load = 0;
    bool is_poissonian = false;  ///< intervals are exponential, else all alike
    std::uint32_t outstanding = 128;
};

struct FlowSystemConfig : SystemConfig {
    std::vector<NodeIndex> hosts;  ///< of each node
    std::vector<Flow> flows;
};

/// After the warm-up.
struct FlowReport {
    struct Count {
        std::uint64_t messages = 0;  ///< that have arrived
        base::Bytes bytes = 0;       ///< of their payload

        /// Calls see(name, member, meaning) for each field.
        template <class See>
        static void each(See see) {
            see("messages", &Count::messages, "Messages that have arrived.");
            see("bytes", &Count::bytes, "Bytes of their payload.");
        }
    };
    base::Time window;
    std::vector<Count> flows;  ///< all sources of each together
    base::Time processor;      ///< spent on messages, a sum over the nodes

    /// Calls see(name, member, meaning) for each field but the flows.
    template <class See>
    static void each(See see) {
        see("window", &FlowReport::window, "From the end of the warm-up to the end.");
        see("processor", &FlowReport::processor,
            "Time of processors spent on messages, a sum over the nodes.");
    }
};

struct FlowNote {
    std::uint32_t sender = 0;
    base::Time posted;
};

class FlowSystem final : public SystemOf<FlowNote> {
  public:
    /// A message that has arrived, for timelines.
    struct Arrival {
        base::Time posted;
        base::Time arrived;
        std::uint32_t source = 0;  ///< node
        std::uint32_t flow = 0;

        /// Calls see(name, member, meaning) for each field.
        template <class See>
        static void each(See see) {
            see("posted", &Arrival::posted, "Time at which each message was posted.");
            see("arrived", &Arrival::arrived, "Time at which its receiver had it.");
            see("source", &Arrival::source, "The node that sent it.");
            see("flow", &Arrival::flow, "Its flow, in the order of the configuration.");
        }
    };

    static base::expected<std::unique_ptr<FlowSystem>> make(const FlowSystemConfig& config);

    [[nodiscard]] const FlowSystemConfig& config() const { return config_; }
    [[nodiscard]] FlowReport report() const;
    /// From the post of a message until its receiver has it, of those that arrived after the
    /// warm-up.
    [[nodiscard]] const sim::Histogram& latency(std::uint32_t flow) const { return latency_[flow]; }
    /// A deadlock: only clock events are left, and messages are not complete.
    [[nodiscard]] bool stalled() const override;
    /// Books of packets and credits, and of messages.
    [[nodiscard]] base::expected<void> check_conservation() const;

    /// Keeps the messages that arrive from now on.
    void record_messages() { recording_ = true; }
    [[nodiscard]] const std::vector<Arrival>& arrivals() const { return recorded_; }

  private:
    using Note = FlowNote;

    enum EventKind : std::uint32_t {
        kDue = Letters::kFirstOtherEvent,  ///< index: sender whose next message is due
        kWarm,
    };
    /// One source of a flow.
    struct Sender {
        std::uint32_t flow = 0;
        std::uint32_t node = 0;
        double interval_ps = 0;
        base::RandomStream random;
        double offset_ps = 0;                 ///< of the next message from the flow's start
        base::Time due = base::Time::zero();  ///< the same as an instant
        std::uint64_t posted = 0;
        std::uint32_t outstanding = 0;
        bool is_awaited = false;  ///< an event will come at `due`
    };

    explicit FlowSystem(const FlowSystemConfig& config) : config_(config) {}
    base::expected<void> check(const Flow& flow) const;
    void add_senders(std::uint32_t flow);
    [[nodiscard]] std::vector<double> intervals_ps(const Flow& flow) const;

    void on_letter(const Letter& letter, base::Time now) override;
    void on_written(const Letter& letter, base::Time now) override;
    void on_event(const sim::Event& event) override;
    void supply(std::uint32_t index, base::Time now);
    void post(std::uint32_t index, base::Time now);
    void set_due(Sender& sender) const;

    FlowSystemConfig config_;
    std::vector<Sender> senders_;
    std::vector<sim::Histogram> latency_;            ///< by flow
    std::vector<FlowReport::Count> counted_;         ///< by flow
    std::vector<FlowReport::Count> counted_before_;  ///< when the warm-up ended
    base::Time processor_before_;
    base::Time counted_from_;
    std::uint64_t posted_ = 0;
    std::uint64_t completed_ = 0;
    std::uint32_t awaited_ = 0;  ///< senders whose next message an event will tell of
    bool warm_ = false;
    bool recording_ = false;
    std::vector<Arrival> recorded_;
};

}  // namespace daqloom::systems
