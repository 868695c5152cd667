// Messages over TCP connections over a simulated Ethernet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/distribution.hpp"
#include "base/expected.hpp"
#include "base/pool.hpp"
#include "base/random.hpp"
#include "base/units.hpp"
#include "ethernet/network.hpp"
#include "transport/tcp/config.hpp"
#include "transport/tcp/endpoints.hpp"
#include "transport/transport.hpp"
#include "transport/udp/endpoints.hpp"

namespace daqloom::transport {

/// Two hosts have one connection per traffic class for messages in both directions, made with the
/// first message.
class TcpOverEthernet final : public Transport {
  public:
    static base::expected<std::unique_ptr<TcpOverEthernet>> make(
        const ethernet::NetworkConfig& network, const TcpConfig& tcp);

    void end_at(base::Time end) override;
    void post(const Posting& message, base::Time latency, base::Time now) override;
    void expect(NodeIndex from, NodeIndex to) const override;
    void close(NodeIndex host, base::Time now, Listener& listener) override;
    void run(base::Time until, Listener& listener) override;
    void begin_counting(base::Time now, base::Time end, std::size_t bins) override;
    [[nodiscard]] Report report() override;
    [[nodiscard]] std::size_t idle_events() const override;
    [[nodiscard]] base::Bytes bytes_on_wire(base::Bytes message) const override;
    [[nodiscard]] base::expected<void> check_conservation() const override;

    [[nodiscard]] const UdpEndpoints* udp() const override { return &udp_; }
    [[nodiscard]] const ethernet::Network* ethernet() const override { return &network_; }
    /// Sets the observers of frames and of expiring timers; a null pointer removes an observer.
    void observe(ethernet::Observer* frames, TimeoutObserver* timeouts) {
        network_.observe(frames);
        endpoints_.observe(timeouts);
    }
    [[nodiscard]] const ethernet::Network& network() const { return network_; }
    [[nodiscard]] TcpEndpoints& endpoints() { return endpoints_; }
    [[nodiscard]] const TcpEndpoints& endpoints() const { return endpoints_; }

  private:
    enum EventKind : std::uint32_t {
        kBegin = kDelayedAck + 1,  ///< index: message that may be written from now on
        kSample,                   ///< of switch occupancy
        kPause,                    ///< index: kOnTheWay, or kAtTheEnd of the run
        kTaken,   ///< index: packet that has arrived and reaches its host's software
        kChange,  ///< change of a link
        kUdp,     ///< and the next one: see UdpEndpoints
    };
    static_assert(kUdp + 1 < kFirstOtherEvent);
    static constexpr std::uint32_t kOnTheWay = 0;
    static constexpr std::uint32_t kAtTheEnd = 1;

    struct Sink;
    /// A message that is not written yet.
    struct DelayedPost {
        Posting message;
        std::uint32_t closings = 0;  ///< closings of its host before the post
    };

    TcpOverEthernet(const TcpConfig& tcp, const ethernet::NetworkConfig& network)
        : packet_latency_(tcp.packet_latency),
          is_late_(packet_latency_.kind != base::DelayDistribution::Kind::fixed ||
                   packet_latency_.mean > base::Time::zero()),
          latency_of_packets_(network.seed, "packet latency"),
          network_(events_),
          endpoints_(tcp, network.hosts, network.classes(), network_, events_),
          udp_(network_, events_, network, largest_frame(tcp), kUdp),
          service_classes_(network.service_classes),
          closings_(network.hosts),
          left_(network.hosts),
          taken_(network.hosts) {}

    /// Size of the largest frame, as buffered.
    static base::Bytes largest_frame(const TcpConfig& tcp) {
        return tcp.mss + tcp.header_bytes() + ethernet::kFrameOverhead;
    }
    void delay(const Posting& message, base::Time until) {
        events_.push({until, kBegin, delayed_.put({message, closings_[message.from]})});
    }
    void write(const Posting& message, base::Time now);
    void write_delayed(std::uint32_t place, base::Time now, Listener& listener);
    [[nodiscard]] EndpointIndex endpoint_of(const Posting& message) {
        return endpoints_.endpoint(message.from, message.to,
                                   lane_by_level(service_classes_, message.service_level));
    }
    [[gnu::noinline]] void handle(const sim::Event& event, Listener& listener);
    /// Hands a packet to its host's software after the packet latency, in the order of arrival.
    void take_later(const ethernet::Frame& frame, base::Time now) {
        base::Time& taken = taken_[frame.destination()];
        taken = std::max(taken, now + packet_latency_.draw(latency_of_packets_));
        events_.push({taken, kTaken, arrived_.put(frame)});
    }

    base::DelayDistribution packet_latency_;
    bool is_late_;  ///< whether packet latency is not always zero
    base::RandomStream latency_of_packets_;
    ethernet::Network network_;
    TcpEndpoints endpoints_;
    UdpEndpoints udp_;
    std::vector<ethernet::TrafficClass> service_classes_;  ///< by service level
    base::Pool<DelayedPost> delayed_;
    base::Table<NodeIndex, std::uint32_t> closings_;  ///< closings of each host's connections
    base::Table<NodeIndex, base::Time> left_;         ///< when each host's last message leaves
    base::Table<NodeIndex, base::Time> taken_;        ///< when each host gets its last packet
    base::Pool<ethernet::Frame> arrived_;             ///< packets that their hosts have not got yet
    base::Time end_ = base::Time::never();
    bool ended_ = false;
};

}  // namespace daqloom::transport
