// Messages from host to host over a simulated network, whatever the network and the transport.
//
// A transport owns the network and the pending events, and runs them: what is done for each packet
// is known when it is compiled. Whoever posts messages is told of each message, by virtual calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "ethernet/network.hpp"
#include "infiniband/network.hpp"
#include "network/graph.hpp"
#include "sim/event_queue.hpp"
#include "sim/fingerprint.hpp"
#include "transport/report.hpp"

namespace daqloom::transport {

using network::NodeIndex;
using network::ServiceLevel;

/// The lane, or class, of a service level, by a network's table; 0 of levels beyond it.
inline network::Lane lane_by_level(const std::vector<network::Lane>& lanes, ServiceLevel level) {
    return level < lanes.size() ? lanes[level] : network::Lane(0);
}

/// A message on its way from one host to another.
struct Posting {
    NodeIndex from;
    NodeIndex to;
    base::Bytes bytes = 0;
    std::uint64_t tag = 0;  ///< the poster's own identifier
    ServiceLevel service_level = 0;
    bool completes = false;    ///< the poster wants to know when it is there
    bool is_datagram = false;  ///< over UDP: it may be lost, and is complete when it has left
};

/// Who posts messages.
class Listener {
  public:
    virtual ~Listener() = default;
    /// A message will be received soon: what is known of it may be fetched into the cache.
    virtual void expect(std::uint64_t /*tag*/) const {}
    /// All of a message is at its destination.
    virtual void on_received(std::uint64_t tag, base::Time now) = 0;
    /// Its sender knows that it is there; told of those that ask for it.
    virtual void on_completed(std::uint64_t tag, base::Time now) = 0;
    /// Its sender has given up.
    virtual void on_failed(std::uint64_t tag, base::Time now) = 0;
    /// A message over UDP will never be at its destination.
    virtual void on_lost(std::uint64_t /*tag*/, base::Time /*now*/) {}
    /// An event whose kind is not the transport's is due.
    virtual void on_event(const sim::Event& event) = 0;
};

class UdpEndpoints;

class Transport {
  public:
    /// Kinds of event from here on are the listener's.
    static constexpr std::uint32_t kFirstOtherEvent = 11;

    Transport() = default;
    Transport(const Transport&) = delete;
    Transport& operator=(const Transport&) = delete;
    virtual ~Transport() = default;

    /// To be called before all else: when the last run ends. What is due at that instant does not
    /// happen any more.
    virtual void end_at(base::Time /*end*/) {}
    /// A message leaves after `latency` (of the host's software and adapter) at the earliest.
    virtual void post(const Posting& message, base::Time latency, base::Time now) = 0;
    /// A message from one host to another will be posted soon: what it needs may be fetched into
    /// the cache. Thousands of connections do not stay there from one message to the next.
    virtual void expect(NodeIndex /*from*/, NodeIndex /*to*/) const {}
    /// The process on a host has ended, or makes new connections: what it has under way on the old
    /// ones fails, and nothing answers on those to it; over TCP they are reset. Within an event of
    /// the listener's.
    virtual void close(NodeIndex /*host*/, base::Time /*now*/, Listener& /*listener*/) {}
    /// Runs until `until`, or until no event is left.
    virtual void run(base::Time until, Listener& listener) = 0;
    /// From here on, what is counted counts; what is recorded over time, in that many bins of the
    /// time until `end`.
    virtual void begin_counting(base::Time now, base::Time end, std::size_t bins) = 0;
    [[nodiscard]] virtual Report report() = 0;
    /// What a message of so many bytes takes on the wire of a host's cable, all its packets and
    /// what goes with each.
    [[nodiscard]] virtual base::Bytes bytes_on_wire(base::Bytes message) const = 0;
    /// Pending events of its own that bring nothing about: samples, timers that nobody waits for.
    [[nodiscard]] virtual std::size_t idle_events() const { return 0; }
    /// Checks that nothing is lost but what is counted as lost; otherwise returns a sentence that
    /// names the difference.
    [[nodiscard]] virtual base::expected<void> check_conservation() const = 0;

    /// What carries messages over UDP; null: nothing does.
    [[nodiscard]] virtual const UdpEndpoints* udp() const { return nullptr; }
    /// The network, if it is one of these.
    [[nodiscard]] virtual const ethernet::Network* ethernet() const { return nullptr; }
    [[nodiscard]] virtual const infiniband::Network* infiniband() const { return nullptr; }

    [[nodiscard]] base::Time now() const { return now_; }
    [[nodiscard]] sim::EventQueue& events() { return events_; }
    [[nodiscard]] const sim::EventQueue& events() const { return events_; }
    [[nodiscard]] std::uint64_t sim_events() const { return sim_events_; }
    /// A hash of all events processed, in order: when, of which kind, and of what.
    [[nodiscard]] std::uint64_t fingerprint() const { return fingerprint_.value(); }

  protected:
    /// An event that has been taken off is processed.
    void begin(const sim::Event& event) {
        now_ = event.at;
        ++sim_events_;
        fingerprint_.add(event);
    }

    sim::EventQueue events_;
    base::Time now_;

  private:
    std::uint64_t sim_events_ = 0;
    sim::Fingerprint fingerprint_;
};

}  // namespace daqloom::transport
