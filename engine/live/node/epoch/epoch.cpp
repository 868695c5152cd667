#include "live/node/epoch/epoch.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "live/memory/clock.hpp"

namespace daqloom::live {

namespace {

/// Limit on a sleep, so that an idle data thread still counts beats.
constexpr base::Time kLongestSleep = base::milliseconds(100);

/// The data thread's loop of one epoch.
class Loop {
  public:
    Loop(Epoch& epoch, Transport& transport, NodeCounters& counters, const Lease& lease, Halt& halt)
        : epoch_(epoch), transport_(transport), counters_(counters), lease_(lease), halt_(halt) {}

    void run() {
        const base::Time began = now();
        keep_lease(began);
        epoch_.begin();
        while (!halt_.is_abandoned()) {
            close_if_requested();
            const bool received = transport_.poll(epoch_);
            const base::Time here = now();
            keep_lease(here);
            const bool stepped = epoch_.step(here);
            counters_.beats.add(1);
            if (counters_.first_mep_ps == 0 && counters_.meps_built > 0) {
                counters_.first_mep_ps.add(now() - began);
            }
            publish();
            if (!received && !stepped) {
                sleep();
            }
        }
        counters_.answered_to(epoch_.next_mep());
    }

  private:
    void keep_lease(base::Time here) {
        const base::Time until = epoch_.keep_contact(here, lease_.until(), lease_.beat());
        const std::uint64_t end = lease_.mep_end(here, until);
        if (end == leased_to_) {
            return;
        }
        counters_.leases_over.add(end == 0 ? 1 : 0);
        leased_to_ = end;
        epoch_.on_lease(end);
    }

    void close_if_requested() {
        if (const std::uint32_t requests = halt_.requests(); requests != requests_) {
            requests_ = requests;
            epoch_.on_close(halt_.lost());
        }
    }

    /// Publishes changes of state for which the control thread may wait.
    void publish() {
        bool has_news = epoch_.suspects().size() != published_.suspects.size();
        if (requests_ > 0 && !published_.is_drained && epoch_.is_drained()) {
            published_.next_mep = epoch_.next_mep();
            epoch_.end();
            published_.is_drained = has_news = true;
        }
        if (published_.is_drained && epoch_.is_consumed() != published_.is_consumed) {
            published_.is_consumed = !published_.is_consumed;
            has_news = true;
        }
        if (has_news) {
            published_.suspects.assign(epoch_.suspects().begin(), epoch_.suspects().end());
            halt_.publish(published_);
        }
    }

    void sleep() {
        const base::Time from = now();
        transport_.wait(std::min(epoch_.next_timer(), from + kLongestSleep));
        const base::Time woken = now();
        keep_lease(woken);  // before answering what arrived while the thread slept
        epoch_.on_slept(woken - from);
    }

    Epoch& epoch_;
    Transport& transport_;
    NodeCounters& counters_;
    const Lease& lease_;
    Halt& halt_;
    std::uint64_t leased_to_ = std::numeric_limits<std::uint64_t>::max();
    std::uint32_t requests_ = 0;
    Halt::State published_;
};

}  // namespace

void Halt::close(std::span<const UnitIndex> lost) {
    const std::lock_guard lock(mutex_);
    lost_.insert(lost_.end(), lost.begin(), lost.end());
    requests_.fetch_add(1, std::memory_order_release);
}

std::vector<UnitIndex> Halt::lost() {
    const std::lock_guard lock(mutex_);
    return lost_;
}

void Halt::publish(const State& state) {
    const std::lock_guard lock(mutex_);
    state_ = state;
    changed_.notify_all();
}

Halt::State Halt::wait(bool consumed, base::Time until) {
    std::unique_lock lock(mutex_);
    const auto left = std::chrono::nanoseconds((until - now()).ps / 1'000);
    changed_.wait_for(lock, left,
                      [&] { return state_.is_drained && (state_.is_consumed || !consumed); });
    return state_;
}

void run_epoch(Epoch& epoch, Transport& transport, NodeCounters& counters, const Lease& lease,
               Halt& halt) {
    Loop(epoch, transport, counters, lease, halt).run();
}

}  // namespace daqloom::live
