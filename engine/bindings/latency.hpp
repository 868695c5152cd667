// A distribution of latencies as the few numbers that a result carries.
#pragma once

#include <nanobind/nanobind.h>

#include "sim/histogram.hpp"

namespace daqloom::bindings {

/// In seconds; empty if nothing was recorded.
inline nanobind::dict latency_numbers(const sim::Histogram& latency) {
    nanobind::dict numbers;
    if (!latency.empty()) {
        numbers["min"] = latency.min().seconds();
        numbers["mean"] = latency.mean_ps() * 1e-12;
        numbers["p50"] = latency.quantile(0.5).seconds();
        numbers["p99"] = latency.quantile(0.99).seconds();
        numbers["max"] = latency.max().seconds();
    }
    return numbers;
}

/// Its buckets that hold something: `lowest_s`, `width_s`, `count`.
inline nanobind::dict latency_histogram(const sim::Histogram& latency) {
    nanobind::list lowest_s;
    nanobind::list width_s;
    nanobind::list count;
    for (const auto& bucket : latency.buckets()) {
        lowest_s.append(bucket.lowest.seconds());
        width_s.append(bucket.width.seconds());
        count.append(bucket.count);
    }
    nanobind::dict histogram;
    histogram["lowest_s"] = lowest_s;
    histogram["width_s"] = width_s;
    histogram["count"] = count;
    return histogram;
}

}  // namespace daqloom::bindings
