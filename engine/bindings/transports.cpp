// Transports, for Python.
#include "bindings/report.hpp"
#include "bindings/settings.hpp"
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
    auto tcp = bind_config<TcpConfig>(module, "TcpConfig", "TCP at both ends of all connections.");
    bind_settings<transport::CongestionConfig>(tcp);
    bind_config<RdmaConfig>(module, "RdmaConfig", "RDMA over reliable connections.");
    bind_report<transport::TcpSenderCounters>(
        module, "TcpCounters", "Retransmissions and expired timers, all connections together.");
    bind_report<transport::RetryCounters>(module, "RetryCounters",
                                          "Losses and retransmissions over the whole run.");
}

const Subject transports(bind_transports);

}  // namespace

}  // namespace daqloom::bindings
