// The statistics of a simulation.
#pragma once

#include "sim/batch_means.hpp"
#include "sim/histogram.hpp"
#include "sim/time_series.hpp"
