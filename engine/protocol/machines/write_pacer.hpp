// Who may write to a builder unit: readout units say when they are ready, and it lets a few of them
// write at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/schedule/shift_rules.hpp"

namespace daqloom::protocol {

struct WritePacerConfig {
    std::uint32_t readouts = 1;
    std::uint32_t writers = 1;  ///< at a time
    WriteOrder order = WriteOrder::arrival;
};

/// Of an MFP, among all that a readout unit writes to one builder unit: they follow each other in
/// this order, with gaps.
constexpr std::uint64_t write_number(std::uint64_t turn, StreamIndex stream) {
    return turn << 16 | stream.value();
}

/// That a readout unit is ready. It makes one request after the other, numbered from 1.
struct WriteRequest {
    std::uint64_t number = 0;
    std::uint64_t step = 0;    ///< of the schedule
    std::uint64_t first = 0;   ///< it writes MFPs from this number on
    std::uint64_t end = 0;     ///< up to but without this one
    std::uint64_t writes = 0;  ///< these are so many
    base::Bytes bytes = 0;     ///< of all these
    /// From its last request, to any builder unit, until the answer to it, without what the builder
    /// unit held that back; zero: it has had none.
    base::Time round_trip = base::Time::zero();
};

/// The outputs of a pacer, which the driver implements. Neither may call the pacer back.
template <class Out>
concept WritePacerOut =
    requires(Out& out, ReadoutIndex readout, std::uint64_t request, base::Time time) {
        out.go(readout, request, time);  ///< answer to its request, which was held for so long
        out.set_go_timer(time);          ///< call on_timer
    };

/// A request is answered when fewer than `writers` readout units write; those that wait are
/// answered in the order in which they came, or in that of the schedule. A readout unit writes from
/// its answer until all its writes are here, or it says that it is through.
///
/// A single writer is followed without a gap: the next one is answered ahead of time, by as long as
/// an answer and the first bytes of the write take, which readout units measure: a round trip. When
/// the writer will be through follows from its bytes and the rate of those before. (Of several
/// writers the others fill the gap.)
///
/// Invariants: a request is answered once; at most `writers` are answered and not through, and one
/// more in the last round trip before a single writer is expected to be through; in the order of
/// arrival nobody is passed over, in that of the schedule only by earlier steps. Messages may be
/// reordered. Invalid input is counted and otherwise ignored.
class WritePacer {
  public:
    struct Counters {
        std::uint64_t requests = 0;
        std::uint64_t answered = 0;
        std::uint64_t ahead = 0;      ///< of these, ahead of time
        std::uint64_t withdrawn = 0;  ///< requests
        std::uint64_t most_waiting = 0;
        base::Time held = base::Time::zero();  ///< by all requests answered
        std::uint64_t late = 0;                ///< inputs ignored: about a request that is over
        std::uint64_t unexpected = 0;
    };

    static base::expected<WritePacer> make(WritePacerConfig config);

    template <WritePacerOut Out>
    void on_ready(ReadoutIndex readout, const WriteRequest& request, base::Time now, Out& out) {
        if (!last_request_.contains(readout) || request.first >= request.end ||
            request.writes < 1 || request.writes > most_writes || request.bytes < 0 ||
            request.bytes > most_bytes || request.round_trip < base::Time::zero() ||
            request.round_trip > longest_trip) {
            ++counters_.unexpected;
            return;
        }
        if (request.number <= last_request_[readout]) {  // who asks again is through
            ++counters_.late;
            return;
        }
        last_request_[readout] = request.number;
        note_round_trip(request.round_trip);
        ++counters_.requests;
        waiting_.insert(place_of(request.step), {request, readout, now});
        counters_.most_waiting = std::max<std::uint64_t>(counters_.most_waiting, waiting_.size());
        answer_what_may_write(now, out);
    }

    /// Its MFP of this number is here.
    template <WritePacerOut Out>
    void on_written(ReadoutIndex readout, std::uint64_t number, base::Time now, Out& out) {
        // Of a request that it has withdrawn, it may have asked for the rest again.
        const auto writer =
            std::ranges::find_if(writing_.rbegin(), writing_.rend(), [&](const Request& it) {
                return it.readout == readout && it.first <= number && number < it.end;
            });
        if (writer != writing_.rend()) {
            ++writer->here;
            end_if_through(std::prev(writer.base()), now);
            answer_what_may_write(now, out);
        }
    }

    /// It has made only so many writes of its request, and makes no more.
    template <WritePacerOut Out>
    void on_through(ReadoutIndex readout, std::uint64_t request, std::uint64_t writes,
                    base::Time now, Out& out) {
        if (!last_request_.contains(readout)) {
            ++counters_.unexpected;
            return;
        }
        if (request > last_request_[readout]) {  // the request itself comes later, and is over
            last_request_[readout] = request;
            return;
        }
        const auto is_it = [&](const Request& it) {
            return it.readout == readout && it.number == request;
        };
        if (const auto waits = std::ranges::find_if(waiting_, is_it); waits != waiting_.end()) {
            waiting_.erase(waits);
            ++counters_.withdrawn;
        } else if (const auto writer = std::ranges::find_if(writing_, is_it);
                   writer != writing_.end() && writes < writer->writes) {
            writer->writes = writes;
            end_if_through(writer, now);
        } else {
            ++counters_.late;
        }
        answer_what_may_write(now, out);
    }

    template <WritePacerOut Out>
    void on_timer(base::Time now, Out& out) {
        timer_ = base::Time::never();
        answer_what_may_write(now, out);
    }

    [[nodiscard]] const Counters& counters() const { return counters_; }
    /// Requests that are not answered.
    [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
    /// Readout units that have been answered and are not through.
    [[nodiscard]] std::size_t writing() const { return writing_.size(); }
    /// How long before the end of a write the next one is answered; zero: not known yet.
    [[nodiscard]] base::Time lead() const { return lead_; }

  private:
    static constexpr std::uint64_t most_writes = std::uint64_t{1} << 32;
    static constexpr base::Bytes most_bytes = base::Bytes{1} << 48;
    static constexpr base::Time longest_trip = base::seconds(1'000);
    /// The rate follows from so many writes, twice at most, that came without a gap.
    static constexpr std::uint32_t most_busy = 8;
    /// The shortest of so many round trips counts: the others have waited for something.
    static constexpr std::size_t round_trips = 8;

    struct Request : WriteRequest {
        ReadoutIndex readout{};
        base::Time came;
        std::uint64_t here = 0;  ///< of its writes
    };

    explicit WritePacer(WritePacerConfig config);

    [[nodiscard]] std::vector<Request>::const_iterator place_of(std::uint64_t step) const {
        return config_.order == WriteOrder::arrival
                   ? waiting_.end()
                   : std::ranges::upper_bound(waiting_, step, {}, &Request::step);
    }

    void end_if_through(std::vector<Request>::iterator writer, base::Time now);
    void note_round_trip(base::Time round_trip);
    /// What comes from then on tells the rate.
    void begin_busy(base::Time since);
    /// This writer is through.
    void note_rate(const Request& done, base::Time now);
    /// When the single writer will be through; `never`: not known.
    [[nodiscard]] base::Time expected_end() const;

    template <WritePacerOut Out>
    void answer_what_may_write(base::Time now, Out& out) {
        while (!waiting_.empty() && writing_.size() < config_.writers) {
            answer_next(now, out);
        }
        if (waiting_.empty() || config_.writers > 1 || writing_.size() > 1) {
            return;
        }
        const base::Time end = expected_end();
        if (end == base::Time::never()) {
            return;
        }
        if (const base::Time due = end - lead_; due <= now) {
            ++counters_.ahead;
            answer_next(now, out);
        } else if (due < timer_) {
            timer_ = due;
            out.set_go_timer(due);
        }
    }

    template <WritePacerOut Out>
    void answer_next(base::Time now, Out& out) {
        Request next = waiting_.front();
        waiting_.erase(waiting_.begin());
        if (writing_.empty()) {
            begin_busy(now + lead_);
        }
        writing_.push_back(next);
        ++counters_.answered;
        counters_.held += now - next.came;
        out.go(next.readout, next.number, now - next.came);
    }

    WritePacerConfig config_;
    base::Table<ReadoutIndex, std::uint64_t> last_request_;
    std::vector<Request> waiting_;            ///< in the order in which they are answered
    std::vector<Request> writing_;            ///< in the order in which they were
    base::Time timer_ = base::Time::never();  ///< which has been asked for
    std::vector<base::Time> trips_;           ///< the last round trips
    std::size_t next_trip_ = 0;
    base::Time lead_ = base::Time::zero();
    /// First byte of the first of the writers that follow each other without a gap: what has come
    /// since tells the rate, even if two overlap.
    base::Time busy_since_;
    base::Bytes busy_bytes_ = 0;     ///< of those that are through
    std::uint32_t busy_writes_ = 0;  ///< the same
    double ps_per_byte_ = 0;         ///< of a single writer; 0: not known
    Counters counters_;
};

}  // namespace daqloom::protocol
