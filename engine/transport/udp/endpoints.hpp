// UDP endpoints of all hosts. A message is a sequence of datagrams; each is sent once, in a
// separate frame, without acknowledgement.
//
// A message has arrived when all its datagrams have arrived, and is lost when a datagram is lost. A
// host hands the next datagram of a class to its adapter when the previous one begins to leave.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/expected.hpp"
#include "base/pool.hpp"
#include "base/ring.hpp"
#include "base/units.hpp"
#include "ethernet/frame.hpp"
#include "ethernet/network.hpp"
#include "network/graph.hpp"
#include "sim/event_queue.hpp"
#include "transport/transport.hpp"

namespace daqloom::transport {

/// Headers of IPv4 (RFC 791) and UDP (RFC 768), without options.
inline constexpr base::Bytes kUdpHeaders = 20 + 8;

class UdpEndpoints final : private ethernet::LossObserver {
  public:
    /// `frame`: largest frame size, as buffered; `first_event`: the first of two event kinds.
    UdpEndpoints(ethernet::Network& network, sim::EventQueue& events,
                 const ethernet::NetworkConfig& config, base::Bytes frame,
                 std::uint32_t first_event);
    UdpEndpoints(const UdpEndpoints&) = delete;
    UdpEndpoints& operator=(const UdpEndpoints&) = delete;

    /// Sets the listener of messages from now on.
    void listen(Listener& listener) { listener_ = &listener; }

    [[nodiscard]] static bool is_datagram(const ethernet::Frame& frame) {
        return (frame.to.value() & kDatagram) != 0;
    }

    /// Posts a message, which leaves after `latency` at the earliest.
    void post(const Posting& message, base::Time latency, base::Time now);
    void on_event(const sim::Event& event);
    /// Reports that a datagram has begun to leave the port in which it waited.
    void on_begun(const ethernet::Frame& datagram, base::Time now);
    /// Handles a datagram that has reached its host.
    void receive(const ethernet::Frame& datagram, base::Time now) { settle(datagram, now); }

    /// Host that sent the datagram.
    [[nodiscard]] network::NodeIndex source(const ethernet::Frame& datagram) const {
        return messages_[datagram.seq].posting.from;
    }
    /// Bytes of a message on the wire, over all its datagrams.
    [[nodiscard]] base::Bytes bytes_on_wire(base::Bytes message) const;
    /// Memory of messages (B).
    [[nodiscard]] std::size_t memory() const;
    /// Checks that each message has arrived, is lost or is under way.
    [[nodiscard]] base::expected<void> check_conservation() const;

  private:
    enum Event : std::uint32_t { kBegins, kDeparts };
    /// Bit in the endpoint field of a frame that marks a datagram. The lower bits select among
    /// paths; they are constant for all datagrams of one source, destination and class.
    static constexpr std::uint32_t kDatagram = std::uint32_t{1} << 31;

    struct Message {
        Posting posting;
        base::Bytes unsent = 0;
        base::Bytes unsettled = 0;  ///< neither arrived nor lost
        bool is_lost = false;
    };
    /// Queue of a host's messages of one class; the first message is being sent.
    using Sender = base::Ring<std::uint32_t, 2>;

    [[nodiscard]] ethernet::TrafficClass class_of(const Posting& message) const {
        return lane_by_level(service_classes_, message.service_level);
    }
    [[nodiscard]] std::uint32_t sender_of(const Posting& message) const {
        return message.from.value() * classes_ + class_of(message).value();
    }
    void begin(std::uint32_t place, base::Time now);
    void send(std::uint32_t place, base::Time now);
    void on_departure(std::uint32_t sender, base::Time now);
    void on_frame_lost(const ethernet::Frame& frame, base::Time now) override;
    void settle(const ethernet::Frame& datagram, base::Time now);

    ethernet::Network& network_;
    sim::EventQueue& events_;
    Listener* listener_ = nullptr;
    base::Bytes payload_;  ///< largest payload of a datagram
    std::uint32_t first_event_;
    std::uint32_t classes_;
    std::vector<ethernet::TrafficClass> service_classes_;  ///< by service level
    std::vector<Sender> senders_;                          ///< by host and class
    base::Pool<Message> messages_;                         ///< messages under way
    std::uint64_t posted_ = 0;
    std::uint64_t received_ = 0;
    std::uint64_t lost_ = 0;
};

}  // namespace daqloom::transport
