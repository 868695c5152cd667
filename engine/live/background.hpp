// Threads that work for a unit's data thread and can wait for it.
#pragma once

#include <pthread.h>
#include <sched.h>

namespace daqloom::live {

/// The calling thread, when woken, takes the processor from nobody (SCHED_BATCH): on a machine with
/// fewer processors than threads, a source or consumer then does much at a time instead of
/// interrupting a data thread for each packet. Without effect on threads of another policy than the
/// usual one.
inline void stay_in_background() {
    int policy = 0;
    sched_param parameters{};
    if (::pthread_getschedparam(::pthread_self(), &policy, &parameters) == 0 &&
        policy == SCHED_OTHER) {
        ::pthread_setschedparam(::pthread_self(), SCHED_BATCH, &parameters);
    }
}

}  // namespace daqloom::live
