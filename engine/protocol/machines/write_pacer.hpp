// Order of writes to one builder unit: readout units send a request when they are ready to write,
// and the builder unit permits a few of them to write at a time.
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
    std::uint32_t writers = 1;  ///< limit on writers at a time
    WriteOrder order = WriteOrder::arrival;
};

/// Number of an MFP among all MFPs that a readout unit writes to one builder unit. Numbers increase
/// in the order of the writes, with gaps.
constexpr std::uint64_t write_number(std::uint64_t turn, StreamIndex stream) {
    return turn << 16 | stream.value();
}

/// Request of a readout unit that is ready to write. A readout unit numbers its requests from 1.
struct WriteRequest {
    std::uint64_t number = 0;
    std::uint64_t step = 0;    ///< step of the schedule
    std::uint64_t first = 0;   ///< number of its first MFP
    std::uint64_t end = 0;     ///< end of the numbers
    std::uint64_t writes = 0;  ///< number of writes
    base::Bytes bytes = 0;     ///< bytes of all writes
    /// Time from the readout unit's last request, to any builder unit, until the answer, minus the
    /// time for which the builder unit held the request; zero: no request yet.
    base::Time round_trip = base::Time::zero();
};

/// The outputs of a pacer, implemented by its driver. They must not call the pacer back.
template <class Out>
concept WritePacerOut =
    requires(Out& out, ReadoutIndex readout, std::uint64_t request, base::Time time) {
        out.go(readout, request, time);  ///< answer to its request, held for this time
        out.set_go_timer(time);          ///< call on_timer
    };

/// Permits at most `writers` readout units to write at a time. A request is answered when fewer are
/// writing; waiting requests are answered in the order of arrival or of the schedule. A readout
/// unit writes from the answer until all its writes have arrived, or until it reports the end of
/// its request.
///
/// With a single writer, the next request is answered one round trip before the expected end of the
/// current writes, so that no gap remains. Readout units measure the round trip: the answer and the
/// first bytes of the write. The end follows from the bytes and the rate of earlier writes.
///
/// Invariants: a request is answered once; at most `writers` requests are answered and not over,
/// plus one in the last round trip before the expected end of a single writer. In arrival order no
/// request is passed over; in schedule order only requests of earlier steps pass others. Messages
/// may be reordered. Invalid input is counted and otherwise ignored.
class WritePacer {
  public:
    struct Counters {
        std::uint64_t requests = 0;
        std::uint64_t answered = 0;
        std::uint64_t ahead = 0;               ///< answered ahead of time
        std::uint64_t withdrawn = 0;           ///< requests
        base::Time held = base::Time::zero();  ///< total time that answered requests were held
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
        if (request.number <= last_request_[readout]) {  // a later request has ended this one
            ++counters_.late;
            return;
        }
        last_request_[readout] = request.number;
        note_round_trip(request.round_trip);
        ++counters_.requests;
        waiting_.insert(place_of(request.step), {request, readout, now});
        answer_what_may_write(now, out);
    }

    /// The readout unit's MFP of this number has arrived.
    template <WritePacerOut Out>
    void on_written(ReadoutIndex readout, std::uint64_t number, base::Time now, Out& out) {
        // Newest request with this number: MFPs of a withdrawn request may be requested again.
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

    /// The readout unit ends its request after this number of writes.
    template <WritePacerOut Out>
    void on_through(ReadoutIndex readout, std::uint64_t request, std::uint64_t writes,
                    base::Time now, Out& out) {
        if (!last_request_.contains(readout)) {
            ++counters_.unexpected;
            return;
        }
        if (request > last_request_[readout]) {  // the request itself is still on its way, and over
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
    /// Requests without an answer.
    [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
    /// Answered requests that are not over.
    [[nodiscard]] std::size_t writing() const { return writing_.size(); }
    /// Time between an early answer and the end of the previous write; zero: not yet known.
    [[nodiscard]] base::Time lead() const { return lead_; }

  private:
    static constexpr std::uint64_t most_writes = std::uint64_t{1} << 32;
    static constexpr base::Bytes most_bytes = base::Bytes{1} << 48;
    static constexpr base::Time longest_trip = base::seconds(1'000);
    /// The rate is averaged over the last `most_busy` to 2 · `most_busy` requests without a gap.
    static constexpr std::uint32_t most_busy = 8;
    /// Number of round trips whose shortest counts, because longer ones include waiting times.
    static constexpr std::size_t round_trips = 8;

    struct Request : WriteRequest {
        ReadoutIndex readout{};
        base::Time arrival;
        std::uint64_t here = 0;  ///< writes that have arrived
    };

    explicit WritePacer(WritePacerConfig config);

    [[nodiscard]] std::vector<Request>::const_iterator place_of(std::uint64_t step) const {
        return config_.order == WriteOrder::arrival
                   ? waiting_.end()
                   : std::ranges::upper_bound(waiting_, step, {}, &Request::step);
    }

    void end_if_through(std::vector<Request>::iterator writer, base::Time now);
    void note_round_trip(base::Time round_trip);
    /// Begins a measurement of the rate.
    void begin_busy(base::Time since);
    /// Adds a writer that has ended to the measurement.
    void note_rate(const Request& done, base::Time now);
    /// Expected end of the single writer; `never`: not known.
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
        counters_.held += now - next.arrival;
        out.go(next.readout, next.number, now - next.arrival);
    }

    WritePacerConfig config_;
    base::Table<ReadoutIndex, std::uint64_t> last_request_;
    std::vector<Request> waiting_;            ///< in the order of their answers to come
    std::vector<Request> writing_;            ///< in the order of their answers
    base::Time timer_ = base::Time::never();  ///< the timer that is set
    std::vector<base::Time> trips_;           ///< the last round trips
    std::size_t next_trip_ = 0;
    base::Time lead_ = base::Time::zero();
    /// Start of the rate measurement: the first byte of the first of several writers that follow
    /// each other without a gap or with an overlap.
    base::Time busy_since_;
    base::Bytes busy_bytes_ = 0;     ///< bytes of the writers that have ended
    std::uint32_t busy_writes_ = 0;  ///< writes of the writers that have ended
    double ps_per_byte_ = 0;         ///< pace of a single writer; 0: not known
    Counters counters_;
};

}  // namespace daqloom::protocol
