#include "systems/recording/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace daqloom::systems {

using base::Bytes;
using base::Time;

namespace {

constexpr std::int64_t kSamples = 10'000;

std::string builder_name(protocol::BuilderIndex builder) {
    return fmt::format("builder {}", builder.value());
}

}  // namespace

base::expected<Timeline> Timeline::open(const PullSystem& system,
                                        const transport::TcpOverEthernet& stack, std::string path) {
    return sim::TraceWriter::open(std::move(path)).map([&](sim::TraceWriter&& writer) {
        return Timeline(system, stack, std::move(writer));
    });
}

Timeline::Timeline(const PullSystem& system, const transport::TcpOverEthernet& stack,
                   sim::TraceWriter writer)
    : system_(&system),
      stack_(&stack),
      shown_(stack.network().switches().size() - 1),
      writer_(std::move(writer)),
      tor_(writer_.track("top of rack", "occupancy")),
      sample_every_(system.config().duration / kSamples),
      rows_(system.config().builders.size()) {}

void Timeline::on_built(protocol::EventId event, protocol::BuilderIndex builder, Time assigned,
                        Time now) {
    Row& row = free_row(builder, assigned);
    row.free_from = now;
    writer_.slice(row.track, fmt::format("event {}", static_cast<std::uint64_t>(event)), assigned,
                  now);
}

void Timeline::on_drop(ethernet::LinkIndex link, const ethernet::Frame& frame, Time now) {
    const auto row = writer_.track("drops", stack_->network().link_name(link));
    writer_.instant(row, "drop", now, {{"bytes", frame.bytes}, {"payload", frame.payload}});
}

void Timeline::on_timeout(ethernet::EndpointIndex endpoint, Time now) {
    // A builder unit opens the connection with its first request.
    const ethernet::EndpointIndex opener = ethernet::opener(endpoint);
    const auto unit_on = [](const std::vector<network::NodeIndex>& hosts, network::NodeIndex host) {
        return std::ranges::find(hosts, host) - hosts.begin();
    };
    const transport::TcpEndpoints& endpoints = stack_->endpoints();
    const protocol::BuilderIndex builder(
        unit_on(system_->config().builders, endpoints.peer_host(peer(opener))));
    const auto readout = unit_on(system_->config().readouts, endpoints.peer_host(opener));
    const auto row = writer_.track(builder_name(builder), "timeouts");
    writer_.instant(row, endpoint == opener ? "timeout of a request" : "timeout of a fragment", now,
                    {{"readout", readout}});
}

base::expected<void> Timeline::close() {
    sample(stack_->network().buffer(shown_).held(), system_->now());
    return writer_.close();
}

/// Returns, of the rows that are free at `from`, the one that was used last. Events come in the
/// order of their ends, so that no more rows are needed than events overlap.
Timeline::Row& Timeline::free_row(protocol::BuilderIndex builder, Time from) {
    Row* best = nullptr;
    for (Row& row : rows_[builder]) {
        if (row.free_from <= from && (best == nullptr || row.free_from > best->free_from)) {
            best = &row;
        }
    }
    if (best != nullptr) {
        return *best;
    }
    const auto name = fmt::format("events {}", rows_[builder].size());
    return rows_[builder].emplace_back(Row{writer_.track(builder_name(builder), name), {}});
}

void Timeline::sample(Bytes held, Time now) {
    writer_.counter(tor_, "bytes held", now, held);
    last_held_ = held;
    next_sample_ = now + sample_every_;
}

}  // namespace daqloom::systems
