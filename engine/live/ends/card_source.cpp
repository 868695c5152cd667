#include "live/ends/card_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "live/memory/clock.hpp"

namespace daqloom::live {

using base::Time;

struct CardSource::Out {
    CardSource& source;

    void set_card_timer(std::uint32_t stream, Time at) { source.events_.push({at, stream, false}); }
};

CardSource::CardSource(CardSourceConfig config, std::vector<Stream> streams, const Doorbell& bell,
                       CardCounters& counters)
    : config_(std::move(config)), bell_(bell), counters_(counters) {
    for (Stream& stream : streams) {
        streams_.push_back({std::move(stream)});
    }
}

void CardSource::start(std::uint64_t first_mfp) {
    stop();
    std::uint64_t begin = ~std::uint64_t{0};
    for (Fed& fed : streams_) {
        fed.writer.emplace(*fed.stream.buffer);  // opens the buffer again
        fed.committed = std::max(fed.committed, first_mfp);
        fed.is_blocked = false;
        begin = std::min(begin, fed.committed);
    }
    cards_.clear();
    for (std::size_t stream = 0; stream < config_.mfps.size(); ++stream) {
        cards_.push_back(
            {base::RandomStream(config_.seed, fmt::format("card {}, {}", stream, first_mfp))});
        for (std::uint64_t mfp = first_mfp; mfp < begin; ++mfp) {  // MFPs of an earlier start
            [[maybe_unused]] const Time delay = config_.acknowledge.draw(cards_.back().random);
        }
    }
    for (Fed& fed : streams_) {
        fed.next_mfp = begin;
    }
    counted_ = {};
    events_ = {};
    model_ = protocol::ReadoutCards(
        config_.interval,
        protocol::ReadoutCards::room_of(config_.card_buffer, config_.mfps, config_.interval));
    thread_.start([this](const std::stop_token& stop) { run(stop); });
}

void CardSource::run(const std::stop_token& stop) {
    const std::stop_callback wake(stop, [this] { bell_.ring(); });
    Out out{*this};
    model_.on_start(now(), out);
    while (!stop.stop_requested()) {
        const Time here = now();
        while (!events_.empty() && events_.top().at <= here) {
            const Event event = events_.top();
            events_.pop();
            handle(event);
        }
        for (std::size_t index = 0; index < streams_.size(); ++index) {
            if (streams_[index].is_blocked && feed(streams_[index])) {
                on_taken(config_.first_stream + index, here);
            }
        }
        const auto stopped = model_.stopped(here);
        counters_.stopped_for_acknowledge_ps.add(stopped.acknowledge - counted_.acknowledge);
        counters_.stopped_for_memory_ps.add(stopped.memory - counted_.memory);
        counted_ = stopped;
        bell_.sleep(events_.empty() ? Time::never() : events_.top().at, [&] {
            return !stop.stop_requested() && std::ranges::none_of(streams_, [](const Fed& fed) {
                return fed.is_blocked && fed.writer->acknowledged() != fed.acknowledged;
            });
        });
    }
}

/// Handles an event at its own time, however late the thread has woken.
void CardSource::handle(const Event& event) {
    Out out{*this};
    const auto stream = static_cast<std::uint32_t>(event.stream);
    if (event.is_acknowledgement) {
        model_.on_acknowledged(stream, event.at, out);
        return;
    }
    if (!model_.on_timer(stream, event.at, out)) {
        return;
    }
    Fed* fed = own(event.stream);
    if (fed != nullptr && now() - event.at > config_.interval) {
        counters_.source.late.add(1);
    }
    if (fed == nullptr || feed(*fed)) {
        on_taken(event.stream, event.at);
    }
}

bool CardSource::feed(Fed& fed) {
    if (fed.next_mfp < fed.committed) {  // in the buffer since an earlier start
        ++fed.next_mfp;
        return true;
    }
    fed.acknowledged = fed.writer->acknowledged();
    const std::uint64_t skipped = fed.stream.feed->skipped();
    const MfpFeed::Fed done = fed.stream.feed->feed(fed.next_mfp, *fed.writer);
    const bool has_room = done != MfpFeed::Fed::no_room;
    counters_.source.skipped.add(fed.stream.feed->skipped() - skipped);
    counters_.source.mfps.add(done == MfpFeed::Fed::done ? 1 : 0);
    counters_.source.blocked.add(!has_room && !fed.is_blocked ? 1 : 0);
    fed.next_mfp += has_room ? 1 : 0;
    fed.committed = std::max(fed.committed, fed.next_mfp);
    fed.is_blocked = !has_room;
    // The reader wakes this thread only while the stream is blocked.
    fed.writer->ring_at(has_room ? fed.acknowledged + (std::uint64_t{1} << 62)
                                 : fed.acknowledged + 1);
    return has_room;
}

void CardSource::on_taken(std::size_t stream, Time now) {
    Out out{*this};
    model_.on_taken(static_cast<std::uint32_t>(stream), now, out);
    Card& card = cards_[stream];
    card.acknowledged_at =
        std::max(card.acknowledged_at, now + config_.acknowledge.draw(card.random));
    if (model_.is_limited(static_cast<std::uint32_t>(stream)) &&
        card.acknowledged_at < Time::never()) {
        events_.push({card.acknowledged_at, stream, true});
    }
}

}  // namespace daqloom::live
