// Interface of simulated transports: messages from host to host over any network and transport.
//
// A transport owns the network and the pending events, and processes these events. Its per-packet
// code is resolved at compile time. The listener gets one virtual call for each event of a message.
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

/// Lane (or traffic class) of a service level in a network's table; 0 for levels beyond the table.
inline network::Lane lane_by_level(const std::vector<network::Lane>& lanes, ServiceLevel level) {
    return level < lanes.size() ? lanes[level] : network::Lane(0);
}

/// A message on its way from one host to another.
struct Posting {
    NodeIndex from;
    NodeIndex to;
    base::Bytes bytes = 0;
    std::uint64_t tag = 0;  ///< identifier chosen by the caller
    ServiceLevel service_level = 0;
    bool completes = false;    ///< the caller needs the completion
    bool is_datagram = false;  ///< over UDP: it may be lost, and is complete when it has left
};

/// Receives the events of messages; callers of `Transport::post` implement it.
class Listener {
  public:
    virtual ~Listener() = default;
    /// A message will soon be received: the listener may prefetch its data into the cache.
    virtual void expect(std::uint64_t /*tag*/) const {}
    /// A message is complete at its destination.
    virtual void on_received(std::uint64_t tag, base::Time now) = 0;
    /// The sender knows that a message has arrived; called only if the message `completes`.
    virtual void on_completed(std::uint64_t tag, base::Time now) = 0;
    /// The sender has given up on the message.
    virtual void on_failed(std::uint64_t tag, base::Time now) = 0;
    /// A message over UDP was lost and will never arrive.
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

    /// Sets the end of the last run, before any other call. Events due at that instant are not
    /// processed.
    virtual void end_at(base::Time /*end*/) {}
    /// Posts a message; it leaves after `latency` (of host software and adapter) at the earliest.
    virtual void post(const Posting& message, base::Time latency, base::Time now) = 0;
    /// Prefetches the connection between two hosts that will soon carry a message: among thousands
    /// of connections, each one leaves the cache between two of its messages.
    virtual void expect(NodeIndex /*from*/, NodeIndex /*to*/) const {}
    /// Closes all connections of a host whose process has ended or opens new connections. Messages
    /// under way on closed connections fail, and messages to the host get no answer, or over TCP a
    /// reset. Called within an event of the listener.
    virtual void close(NodeIndex /*host*/, base::Time /*now*/, Listener& /*listener*/) {}
    /// Runs until `until`, or until no event is left.
    virtual void run(base::Time until, Listener& listener) = 0;
    /// Starts counting. Quantities over time are recorded in `bins` bins between `now` and `end`.
    virtual void begin_counting(base::Time now, base::Time end, std::size_t bins) = 0;
    [[nodiscard]] virtual Report report() = 0;
    /// Bytes that a message takes on the wire of a host's cable: all its packets, with headers and
    /// gaps.
    [[nodiscard]] virtual base::Bytes bytes_on_wire(base::Bytes message) const = 0;
    /// Number of pending events without effect in the transport: samples, and stopped timers.
    [[nodiscard]] virtual std::size_t idle_events() const { return 0; }
    /// Checks that every loss is counted; if not, returns a sentence that names the difference.
    [[nodiscard]] virtual base::expected<void> check_conservation() const = 0;

    /// UDP of all hosts; null if the network carries no datagrams.
    [[nodiscard]] virtual const UdpEndpoints* udp() const { return nullptr; }
    /// The network as an Ethernet, or as an InfiniBand fabric; null if it is of the other kind.
    [[nodiscard]] virtual const ethernet::Network* ethernet() const { return nullptr; }
    [[nodiscard]] virtual const infiniband::Network* infiniband() const { return nullptr; }

    [[nodiscard]] base::Time now() const { return now_; }
    [[nodiscard]] sim::EventQueue& events() { return events_; }
    [[nodiscard]] const sim::EventQueue& events() const { return events_; }
    [[nodiscard]] std::uint64_t sim_events() const { return sim_events_; }
    /// Hash of all processed events in order: time, kind and index.
    [[nodiscard]] std::uint64_t fingerprint() const { return fingerprint_.value(); }

  protected:
    /// Counts an event, which the caller has taken off the queue, as processed.
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
