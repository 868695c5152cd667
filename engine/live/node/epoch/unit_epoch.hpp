// The part of a unit's epoch that does not depend on the protocol: sending, validation, counters,
// delivery of MEPs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/distribution.hpp"
#include "base/expected.hpp"
#include "base/random.hpp"
#include "base/ring.hpp"
#include "base/units.hpp"
#include "live/memory/clock.hpp"
#include "live/node/epoch/epoch.hpp"
#include "live/node/epoch/mep_output.hpp"
#include "live/node/epoch/send_queue.hpp"
#include "protocol/data/immediate.hpp"
#include "protocol/data/mep.hpp"
#include "protocol/run/control_beats.hpp"
#include "protocol/units/unit_message.hpp"

namespace daqloom::live {

class UnitEpoch : public Epoch {
  public:
    void on_slept(base::Time duration) override;
    base::Time keep_contact(base::Time now, base::Time until, std::uint64_t beat) override;
    [[nodiscard]] bool is_consumed() const override {
        return !mep_output_ || mep_output_->is_empty();
    }
    [[nodiscard]] std::span<const UnitIndex> suspects() const override { return unreachable_; }
    void on_unreachable(UnitIndex unit) override;

  protected:
    /// `streams`: number of streams of a readout unit.
    UnitEpoch(const EpochParts& parts, Members members, std::uint32_t streams);

    /// Makes the output of a builder unit.
    void make_mep_output();

    /// Counter for the present waiting time, if the data flow causes the wait; otherwise null.
    [[nodiscard]] virtual Counter* cause_of_waiting() const = 0;
    /// Whether the unit waits only for its own source or consumer, so that no progress is expected.
    [[nodiscard]] virtual bool waits_for_its_own() const = 0;
    /// Whether only the consumer keeps the unit from building: its source has delivered data.
    [[nodiscard]] virtual bool waits_for_consumer() const = 0;

    // ---- others
    void send(UnitIndex to, const protocol::UnitMessage& message) {
        counters_.messages_sent.add(1);
        send_queue_.send(to, message);
    }
    /// Passes a message to the protocol's unit or refuses it. Values are valid until the next call.
    template <class Unit, class World>
    void receive(Unit& unit, World world, UnitIndex from, std::span<const std::byte> bytes) {
        const auto message = protocol::decode_message(
            bytes,
            std::span(values_).first(std::max<std::size_t>(streams_, protocol::ready_values)));
        if (message && message->kind == protocol::UnitMessage::Kind::beat) {
            beats_.on_beat(now(), message->number);
            return;
        }
        if (!message || !members_.readout_of.contains(from) ||
            !unit.on_message(members_.readout_of[from], members_.builder_of[from], *message, now(),
                             world)) {
            ++refused_messages_;
        }
    }
    void refuse_write() { ++refused_writes_; }
    /// The decoded immediate of a write; none: it was refused. `from` may be none.
    std::optional<protocol::Immediate> immediate_of(UnitIndex from, std::uint32_t bits);
    /// Counts the inputs refused earlier and those that the protocol's units ignored here.
    void count_refused(std::uint64_t messages, std::uint64_t writes);

    struct Lost {
        std::vector<protocol::ReadoutIndex> readouts;
        std::vector<protocol::BuilderIndex> builders;
    };
    /// Marks these units as lost: nothing is sent to them any more. Returns their roles.
    Lost lose(std::span<const UnitIndex> units);

    // ---- MEPs. `slot`: below `Immediate::slots`.
    /// The first grant, or request, of the MEP goes out.
    void begin_building(std::uint32_t slot);
    /// Begins a new table, in which all MFPs are missing.
    void clear_table();
    /// Enters a received MFP. `offset`: in its MEP.
    void put_in_table(protocol::ReadoutIndex readout, std::uint32_t stream, base::Bytes offset,
                      base::Bytes bytes);
    struct BuiltMep {
        std::uint32_t slot;
        std::uint64_t key;  ///< passed to `consumed`
        std::uint64_t mep;  ///< number in the epoch
        base::Bytes place;  ///< offset in the output buffer
        base::Bytes bytes;
    };
    /// Writes header and table, and passes the MEP to the consumer.
    void hand_over(const BuiltMep& built);
    /// Calls `consumed(key)` for each MEP that the consumer has acknowledged and whose processing
    /// delays (`mep_processing`) are over. False: no such MEP.
    template <class Consumed>
    bool take_back(base::Time now, Consumed consumed) {
        bool did = mep_output_->take_back([&](std::uint64_t key) {
            if (config().sink == SinkKind::user) {  // other sinks count themselves
                counters_.meps_processed.add(1);
            }
            if (config().mep_processing.empty()) {
                consumed(key);
                return;
            }
            in_process_.emplace(processed_at_.front(), key);
            processed_at_.pop();
        });
        for (; next_processed() <= now; did = true) {
            const std::uint64_t key = in_process_.begin()->second;
            in_process_.erase(in_process_.begin());
            consumed(key);
        }
        return did;
    }
    /// End of the processing of a MEP that the consumer has acknowledged; never: there is none.
    [[nodiscard]] base::Time next_processed() const {
        return in_process_.empty() ? base::Time::never() : in_process_.begin()->first;
    }

    // ---- configuration and members
    [[nodiscard]] const NodeConfig& config() const { return *parts_.config; }
    [[nodiscard]] std::uint32_t builders() const {
        return static_cast<std::uint32_t>(members_.builders.size());
    }
    [[nodiscard]] std::uint32_t readouts() const {
        return static_cast<std::uint32_t>(members_.readouts.size());
    }
    [[nodiscard]] protocol::ReadoutIndex self_readout() const {
        return members_.readout_of[config().self];
    }
    [[nodiscard]] protocol::BuilderIndex self_builder() const {
        return members_.builder_of[config().self];
    }
    [[nodiscard]] std::uint64_t in_run(std::uint64_t mep) const { return parts_.first_mep + mep; }
    /// Number in the epoch of a MEP of the run; 0 for MEPs before the epoch.
    [[nodiscard]] std::uint64_t in_epoch(std::uint64_t mep_end) const {
        return mep_end - std::min(mep_end, parts_.first_mep);
    }
    /// Bytes of a MEP's header, which lists the streams of the whole run.
    [[nodiscard]] base::Bytes header_bytes() const {
        return protocol::mep_overhead(members_.readouts_in_run * streams_);
    }

    EpochParts parts_;
    Members members_;
    NodeCounters& counters_;
    SendQueue send_queue_;

  private:
    std::uint32_t streams_;
    std::optional<MepOutput> mep_output_;
    std::array<base::Bytes, most_streams> values_{};  ///< values of the message that is being read
    std::vector<protocol::MepEntry> table_;           ///< MFPs of the run's streams
    std::uint64_t table_bytes_ = 0;                   ///< bytes of the MFPs in the table
    std::vector<base::Time> granted_at_;              ///< by slot
    base::RandomStream processing_;
    protocol::ControlBeats beats_;
    base::Ring<base::Time> processed_at_;  ///< of MEPs that the consumer has not acknowledged
    std::multimap<base::Time, std::uint64_t> in_process_;  ///< acknowledged MEPs, by their end
    std::vector<UnitIndex> unreachable_;

    // ---- refused: in earlier epochs, and in this one before reaching the protocol's units
    std::uint64_t refused_messages_before_;
    std::uint64_t refused_writes_before_;
    std::uint64_t refused_messages_ = 0;
    std::uint64_t refused_writes_ = 0;
};

}  // namespace daqloom::live
