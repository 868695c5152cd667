// A source of all streams of a unit, whose data come from readout cards with small buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <stop_token>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "base/units.hpp"
#include "live/ends/source.hpp"
#include "live/memory/background.hpp"
#include "live/memory/buffer.hpp"
#include "live/memory/counter.hpp"
#include "live/memory/doorbell.hpp"
#include "protocol/schedule/readout_cards.hpp"
#include "protocol/schedule/spiky_delay.hpp"

namespace daqloom::live {

struct CardSourceConfig {
    base::Time interval;               ///< time between two MFPs of a stream, above zero
    base::Bytes card_buffer = 0;       ///< buffer of a card
    std::vector<base::Bytes> mfps;     ///< mean size of an MFP, by stream of the whole run
    protocol::SpikyDelay acknowledge;  ///< time until a card has the acknowledgement of an MFP
    std::uint64_t seed = 1;
    std::size_t first_stream = 0;  ///< number in the run of the unit's first stream
};

/// Written by the source's thread, read by any thread.
struct CardCounters {
    SourceCounters source;  ///< of all streams
    Counter stopped_for_acknowledge_ps;
    Counter stopped_for_memory_ps;
};

/// A thread that runs the model of the cards (protocol::ReadoutCards) in real time: an MFP is taken
/// from its card when the stream's buffer has room for it.
///
/// The trigger is common to all cards of the run. Acknowledgements are random, by stream and MFP
/// with the seed of the run, so each unit computes those of all cards, and stops its trigger at the
/// same MFPs as the other units, without messages. A full stream buffer stops the trigger of its
/// own unit; the other units then wait for its MFPs.
class CardSource {
  public:
    /// A stream of the unit: the buffer, which has `bell` as its writer's doorbell, and its MFPs.
    struct Stream {
        Buffer* buffer;
        std::unique_ptr<MfpFeed> feed;
    };

    /// `counters` must outlive the source; the next source continues with them.
    CardSource(CardSourceConfig config, std::vector<Stream> streams, const Doorbell& bell,
               CardCounters& counters);
    ~CardSource() { stop(); }
    CardSource(const CardSource&) = delete;
    CardSource& operator=(const CardSource&) = delete;

    /// Starts with this MFP, or the first one that was never committed. See Source.
    void start(std::uint64_t first_mfp);
    void stop() { thread_.stop(); }

  private:
    struct Event {
        base::Time at;
        std::size_t stream;  ///< in the run
        bool is_acknowledgement;
        friend bool operator>(const Event& a, const Event& b) { return a.at > b.at; }
    };
    struct Fed {
        Stream stream;
        std::optional<BufferWriter> writer = {};
        std::uint64_t next_mfp = 0;   ///< next MFP of the card
        std::uint64_t committed = 0;  ///< first MFP that was never committed
        bool is_blocked = false;
        std::uint64_t acknowledged = 0;  ///< acknowledged pieces when the stream was blocked
    };
    struct Card {
        base::RandomStream random;
        base::Time acknowledged_at = base::Time::zero();
    };
    struct Out;

    void run(const std::stop_token& stop);
    void handle(const Event& event);
    /// Commits the next MFP of an own stream. False: there is no room.
    bool feed(Fed& fed);
    void on_taken(std::size_t stream, base::Time now);
    [[nodiscard]] Fed* own(std::size_t stream) {
        const std::size_t index = stream - config_.first_stream;
        return index < streams_.size() ? &streams_[index] : nullptr;
    }

    CardSourceConfig config_;
    std::vector<Fed> streams_;
    const Doorbell& bell_;
    std::vector<Card> cards_;  ///< by stream of the run
    protocol::ReadoutCards model_;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    CardCounters& counters_;
    protocol::ReadoutCards::StopTimes counted_;  ///< stops of this start that are counted
    Background thread_;
};

}  // namespace daqloom::live
