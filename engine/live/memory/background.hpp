// Threads of a unit's sources and sinks, which give way to the data thread.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <stop_token>
#include <thread>
#include <utility>

namespace daqloom::live {

/// A thread that, when woken, does not preempt other threads (SCHED_BATCH): on a machine with fewer
/// processors than threads, a source or consumer then works in larger batches instead of
/// interrupting a data thread for each packet. Threads with another policy than the default keep
/// it.
class Background {
  public:
    /// Calls run(stop token) in a new thread, after the earlier one has ended.
    template <class Run>
    void start(Run run) {
        stop();
        thread_ = std::jthread([run = std::move(run)](const std::stop_token& stop) mutable {
            int policy = 0;
            sched_param parameters{};
            if (::pthread_getschedparam(::pthread_self(), &policy, &parameters) == 0 &&
                policy == SCHED_OTHER) {
                ::pthread_setschedparam(::pthread_self(), SCHED_BATCH, &parameters);
            }
            run(stop);
        });
    }
    /// Requests the end of the thread, and waits for it.
    void stop() { thread_ = {}; }

  private:
    std::jthread thread_;
};

}  // namespace daqloom::live
