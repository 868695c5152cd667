// Messages as RDMA writes over reliable connections, over any network that carries their packets.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "transport/rdma/config.hpp"
#include "transport/rdma/endpoints.hpp"
#include "transport/rdma/framing.hpp"
#include "transport/rdma/host_path.hpp"
#include "transport/rdma/message.hpp"
#include "transport/transport.hpp"

namespace daqloom::transport {

template <class Network>
class RdmaTransport : public Transport {
  public:
    void end_at(base::Time end) override { last_ = end - base::Time{1}; }

    void post(const Posting& posting, base::Time latency, base::Time now) override {
        Message message;
        message.source = posting.from;
        message.destination = posting.to;
        message.bytes = posting.bytes;
        message.immediate = true;
        message.lane = lane_of(posting.service_level);
        message.service_level = posting.service_level;
        message.tag = posting.tag | (posting.completes ? kCompletes : 0);
        endpoints_->post(message, latency, now);
    }

    void close(NodeIndex host, base::Time now, Listener& listener) override {
        ListenerCalls calls{*endpoints_, listener};
        endpoints_->close(host, now, calls);
    }

    void run(base::Time until, Listener& listener) override {
        ListenerCalls calls{*endpoints_, listener};
        const base::Time last = std::min(until, last_);
        while (!events_.empty() && events_.next_time() <= last) {
            const sim::Event event = events_.pop();
            begin(event);
            if ((event.kind & Network::kKindMask) >= kFirstOtherEvent) {
                listener.on_event(event);
            } else {
                endpoints_->on_event(event, calls);
            }
            if (events_.empty() || events_.next_time() != now_) {
                endpoints_->settle(now_, calls);
            }
        }
        now_ = until;
        network_->finish(until);
    }

    [[nodiscard]] base::Bytes bytes_on_wire(base::Bytes bytes) const override {
        Message message;
        message.bytes = bytes;
        message.immediate = true;
        base::Bytes all = 0;
        while (!message.all_sent()) {
            all += message.next_packet(config_.mtu, framing_) + framing_.gap;
            message.sent += std::min(config_.mtu, message.bytes - message.sent);
            message.begun = true;
        }
        return all;
    }

    /// Checks that packets, credits or bytes, and messages are conserved, and all packets routed.
    [[nodiscard]] base::expected<void> check_conservation() const override {
        DAQLOOM_CHECK(endpoints_->check_conservation());
        DAQLOOM_CHECK(network_->check_conservation(now_));
        if (network_->unrouted() > 0 && !network_->changes()) {
            return base::defect(fmt::format("{} packets had no route", network_->unrouted()));
        }
        return {};
    }

    [[nodiscard]] Network& network() { return *network_; }
    [[nodiscard]] const Network& network() const { return *network_; }
    [[nodiscard]] const RetryCounters& retries() const { return endpoints_->retries(); }

  protected:
    RdmaTransport() = default;
    /// Sets up the network, which refers to `events_`, and its endpoints; must be called first.
    void set_up(std::unique_ptr<Network> network, const RdmaConfig& config,
                const RdmaFraming& framing, const HostPathConfig& path, std::uint32_t hosts,
                std::uint32_t lanes) {
        config_ = config;
        framing_ = framing;
        network_ = std::move(network);
        endpoints_ =
            std::make_unique<Endpoints>(config, framing, path, hosts, lanes, *network_, events_);
    }

    [[nodiscard]] Memory memory() const {
        return {.connections = endpoints_->memory(),
                .packets = network_->memory(),
                .messages = endpoints_->message_memory(),
                .events = events_.memory()};
    }

    [[nodiscard]] virtual VirtualLane lane_of(ServiceLevel level) const = 0;

  private:
    using Endpoints = RdmaEndpoints<Network>;
    static_assert(Endpoints::kFirstOtherEvent == kFirstOtherEvent);
    /// Bit in a message's tag: the listener needs the message's completion.
    static constexpr std::uint64_t kCompletes = std::uint64_t{1} << 63;

    struct ListenerCalls {
        Endpoints& endpoints;
        Listener& listener;

        void on_received(MessageIndex index, base::Time now) {
            listener.on_received(endpoints.message(index).tag & ~kCompletes, now);
        }
        void on_completed(MessageIndex index, base::Time now) {
            const std::uint64_t tag = endpoints.message(index).tag;
            if ((tag & kCompletes) != 0) {
                listener.on_completed(tag & ~kCompletes, now);
            }
        }
        void on_failed(MessageIndex index, base::Time now) {
            const Message& message = endpoints.message(index);
            if ((message.tag & kCompletes) != 0 || !message.received) {  // else: not awaited
                listener.on_failed(message.tag & ~kCompletes, now);
            }
        }
    };

    RdmaConfig config_;
    base::Time last_ = base::Time::never();  ///< last instant of the whole run
    RdmaFraming framing_;
    std::unique_ptr<Network> network_;
    std::unique_ptr<Endpoints> endpoints_;
};

}  // namespace daqloom::transport
