// Transports, for Python. Plain attributes; times in seconds (`_s`).
#include "bindings/casters.hpp"
#include "bindings/report.hpp"
#include "bindings/subjects.hpp"
#include "transport/rdma/config.hpp"
#include "transport/tcp/config.hpp"
#include "transport/tcp/sender.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using transport::RdmaConfig;
using transport::TcpConfig;

namespace {

void bind_transports(nb::module_& module) {
    nb::class_<TcpConfig>(module, "TcpConfig")
        .def(nb::init<>())
        .def_rw("congestion", &TcpConfig::congestion)
        .def_rw("mss_bytes", &TcpConfig::mss)
        .def_rw("static_window_bytes", &TcpConfig::static_window)
        .def_rw("initial_window", &TcpConfig::initial_window)
        .def_rw("receive_window_bytes", &TcpConfig::receive_window)
        .def_rw("ack_every", &TcpConfig::ack_every)
        .def_rw("quick_acks", &TcpConfig::quick_acks)
        .def_rw("delayed_ack_s", &TcpConfig::delayed_ack)
        .def_rw("rto_min_s", &TcpConfig::rto_min)
        .def_rw("rto_max_s", &TcpConfig::rto_max)
        .def_rw("packet_latency", &TcpConfig::packet_latency)
        .def_rw("timer_tick_s", &TcpConfig::timer_tick)
        .def_rw("tso_burst_bytes", &TcpConfig::tso_burst)
        .def_rw("dctcp_gain", &TcpConfig::dctcp_gain)
        .def_rw("rack", &TcpConfig::rack)
        .def_rw("tail_loss_probe", &TcpConfig::tail_loss_probe)
        .def_rw("restart_after_idle", &TcpConfig::restart_after_idle)
        .def_rw("hystart", &TcpConfig::hystart)
        .def_rw("timestamps", &TcpConfig::timestamps);
    nb::class_<RdmaConfig>(module, "RdmaConfig")
        .def(nb::init<>())
        .def_rw("mtu", &RdmaConfig::mtu)
        .def_rw("acknowledge", &RdmaConfig::acknowledge)
        .def_rw("retry_timeout_s", &RdmaConfig::retry_timeout)
        .def_rw("retry_spread", &RdmaConfig::retry_spread)
        .def_rw("seed", &RdmaConfig::seed)
        .def_rw("retry_count", &RdmaConfig::retry_count);
    bind_report<transport::TcpSenderCounters>(
        module, "TcpCounters", "Retransmissions and expired timers, all connections together.");
    bind_report<transport::RetryCounters>(module, "RetryCounters",
                                          "Losses and retransmissions over the whole run.");
}

const Subject transports(bind_transports);

}  // namespace

}  // namespace daqloom::bindings
