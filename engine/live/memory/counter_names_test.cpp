// Checks that units have all counters that the run control interprets by name.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "live/memory/counters.hpp"
#include "protocol/run/accounts/named_counters.hpp"

namespace daqloom::live {

namespace {

TEST(CounterNames, TheRunControlReadsTheCountersOfUnits) {
    std::set<std::string> counted;
    NodeCounters::each(
        [&](const char* name, auto /*member*/, const char* /*meaning*/) { counted.insert(name); });
    namespace known = protocol::counter_names;
    for (const std::string name :
         {known::next_mep, known::meps_granted, known::meps_built, known::meps_incomplete,
          known::meps_dropped, known::meps_discarded, known::meps_not_written}) {
        EXPECT_TRUE(counted.contains(name)) << name;
    }
    EXPECT_EQ(std::string(known::not_written), counter_names::kNotWritten.name);
    std::string elapsed = counter_names::kElapsed.name;
    elapsed.erase(elapsed.size() - 2, 1);  // times in ps (`_ps`) leave the engine in seconds (`_s`)
    EXPECT_EQ(elapsed, known::elapsed_s);
}

}  // namespace

}  // namespace daqloom::live
