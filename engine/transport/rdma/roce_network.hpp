// A simulated Ethernet below RDMA (RoCEv2): each packet is a frame, and an adapter hands the next
// frame to its link as soon as the previous one has begun to leave.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/index.hpp"
#include "base/pool.hpp"
#include "base/units.hpp"
#include "ethernet/network.hpp"
#include "network/graph.hpp"
#include "sim/event_queue.hpp"
#include "transport/rdma/framing.hpp"
#include "transport/udp/endpoints.hpp"

namespace daqloom::transport {

class RoceNetwork {
  public:
    enum EventKind : std::uint32_t {
        kDelivery = ethernet::kDelivery,
        kPortFree = ethernet::kPortFree,
        kDeparture,  ///< index: sender (host · lanes + lane) whose packet begins to leave
        kReceived,   ///< index: packet that is in its host's memory now
        kSample,     ///< of the occupancy of the switches
        kChange,     ///< change of a link or of tables
        kUdp,        ///< and the next one: see UdpEndpoints
        kFirstOtherEvent = 8,
    };
    static constexpr std::uint32_t kKindMask = 0xff;

    struct Packet {
        std::uint32_t tag = 0;
        std::uint32_t psn = 0;
        network::NodeIndex destination;
        std::uint16_t bytes = 0;  ///< size of the frame as buffered
        network::Lane lane;
    };

    explicit RoceNetwork(sim::EventQueue& events) : events_(events), network_(events) {}

    /// Builds the network; the lane of a packet is the traffic class of its frame.
    base::expected<void> build(const ethernet::NetworkConfig& config, base::Bytes largest_frame,
                               std::uint32_t lanes) {
        lanes_ = lanes;
        departing_.assign(std::size_t{config.hosts} * lanes, Packet{});
        DAQLOOM_CHECK(network_.build(config, largest_frame));
        hosts_.assign(2 * config.cables.size(), network::NodeIndex::none());
        for (std::uint32_t host = 0; host < config.hosts; ++host) {
            const ethernet::LinkIndex link = network_.host_link(network::NodeIndex(host));
            if (link != ethernet::LinkIndex::none()) {
                hosts_[link] = network::NodeIndex(host);
            }
        }
        network_.plan_changes(kChange);
        udp_.emplace(network_, events_, config, largest_frame, kUdp);
        return {};
    }

    /// From now on `hosts.receive(packet, now)` decides when an arriving packet is in its host's
    /// memory. The adapter's buffer has no limit.
    void let_hosts_hold() { hosts_hold_ = true; }

    /// Sends a packet from a host; at most one data packet per lane of the host waits at a time.
    void inject(network::NodeIndex host, const Packet& packet, base::Time now) {
        const ethernet::LinkIndex link = network_.host_link(host);
        const base::Time start = std::max(now, network_.port(link).free_at());
        const bool response = is_response(packet.tag);
        ethernet::Frame& frame = network_.append(link, packet.lane, packet.bytes, now);
        frame.seq = packet.psn;
        frame.ack = packet.tag & ~kQueuePair;
        // The two directions of a connection are two flows; each has a separate ECMP path.
        frame.to = ethernet::EndpointIndex((packet.tag & kQueuePair) << 1 | (response ? 1U : 0U));
        frame.sack = ethernet::kNoSack;
        frame.payload = response ? std::uint16_t{0} : packet.bytes;
        frame.bytes = packet.bytes;
        frame.send_to(ethernet::address_of(packet.destination, packet.lane), 0);
        if (!response && frame.at != base::Time::never()) {  // else its departure is reported later
            const std::uint32_t sender = host.value() * lanes_ + packet.lane.value();
            departing_[sender] = packet;
            events_.push({start, kDeparture, sender});
        }
    }

    template <class Hosts>
    void on_event(const sim::Event& event, Hosts& hosts) {
        switch (event.kind) {
            case kDelivery:
                network_.on_delivery(ethernet::LinkIndex(event.index), event.at,
                                     Sink<Hosts>{*this, hosts, event.at});
                break;
            case kPortFree:
                on_port_free(ethernet::LinkIndex(event.index), event.at, hosts);
                break;
            case kDeparture: {
                const Packet packet = departing_[event.index];  // a copy: its place is reused
                hosts.on_departure(network::NodeIndex(event.index / lanes_), packet, event.at);
                break;
            }
            case kReceived: {
                const Packet packet = arriving_[event.index];
                arriving_.release(event.index);
                hosts.on_delivered(packet, event.at);
                break;
            }
            case kSample:
                network_.sample_occupancy(event.at, kSample);
                break;
            case kChange:
                network_.on_change(event.index);
                break;
            default:
                udp_->on_event(event);
        }
    }

    /// Does nothing, as this network defers no work to the end of an instant.
    template <class Hosts>
    void settle(base::Time /*now*/, Hosts& /*hosts*/) {}
    void finish(base::Time /*now*/) {}

    void begin_counting(base::Time now, base::Time end, std::size_t bins) {
        network_.begin_counting(now, end, bins);
        network_.sample_occupancy(now, kSample);
    }

    [[nodiscard]] ethernet::Network& ethernet() { return network_; }
    [[nodiscard]] const ethernet::Network& ethernet() const { return network_; }
    /// UDP of the hosts, on the same adapters as RDMA.
    [[nodiscard]] UdpEndpoints& udp() { return *udp_; }
    [[nodiscard]] const UdpEndpoints& udp() const { return *udp_; }
    [[nodiscard]] std::uint64_t packet_hops() const { return network_.packet_hops(); }
    [[nodiscard]] std::size_t memory() const { return network_.memory() + arriving_.memory(); }
    [[nodiscard]] base::expected<void> check_conservation(base::Time /*now*/) const {
        return network_.check_conservation().and_then([&] { return udp_->check_conservation(); });
    }
    [[nodiscard]] std::uint64_t unrouted() const { return network_.unrouted(); }
    [[nodiscard]] bool changes() const { return network_.changes(); }

  private:
    static Packet packet_in(const ethernet::Frame& frame) {
        return {.tag = frame.ack | connection(frame.to),
                .psn = frame.seq,
                .destination = frame.destination(),
                .bytes = frame.bytes,
                .lane = frame.traffic_class()};
    }

    template <class Hosts>
    void on_port_free(ethernet::LinkIndex link, base::Time now, Hosts& hosts) {
        const ethernet::Frame* const begun = network_.on_port_free(link, now);
        if (begun == nullptr || hosts_[link] == network::NodeIndex::none()) {
            return;
        }
        if (UdpEndpoints::is_datagram(*begun)) {
            udp_->on_begun(*begun, now);
        } else if (begun->payload != 0) {
            const Packet packet = packet_in(*begun);
            hosts.on_departure(hosts_[link], packet, now);
        }
    }

    template <class Hosts>
    struct Sink {
        RoceNetwork& network;
        Hosts& hosts;
        base::Time now;

        void receive(const ethernet::Frame& frame) const {
            if (UdpEndpoints::is_datagram(frame)) {
                network.udp_->receive(frame, now);
                return;
            }
            const Packet packet = packet_in(frame);
            if (network.hosts_hold_) {
                const base::Time received = hosts.receive(packet, now);
                if (received > now) {
                    network.events_.push({received, kReceived, network.arriving_.put(packet)});
                    return;
                }
            }
            hosts.on_delivered(packet, now);
        }
        void expect(const ethernet::Frame& /*frame*/) const {}
    };

    sim::EventQueue& events_;
    ethernet::Network network_;
    std::optional<UdpEndpoints> udp_;
    std::uint32_t lanes_ = 1;
    std::vector<Packet> departing_;                               ///< by host and lane
    base::Table<ethernet::LinkIndex, network::NodeIndex> hosts_;  ///< by the link that they send by
    base::Pool<Packet> arriving_;
    bool hosts_hold_ = false;
};

}  // namespace daqloom::transport
