// Scheduling of the background threads of a unit: sources and consumers, which can wait for the
// data thread.
#pragma once

#include <pthread.h>
#include <sched.h>

namespace daqloom::live {

/// The calling thread, when woken, does not preempt others (SCHED_BATCH): on a machine with fewer
/// processors than threads, a source or consumer then works in larger batches instead of
/// interrupting a data thread for each packet. No effect on threads with another policy than the
/// default one.
inline void stay_in_background() {
    int policy = 0;
    sched_param parameters{};
    if (::pthread_getschedparam(::pthread_self(), &policy, &parameters) == 0 &&
        policy == SCHED_OTHER) {
        ::pthread_setschedparam(::pthread_self(), SCHED_BATCH, &parameters);
    }
}

}  // namespace daqloom::live
