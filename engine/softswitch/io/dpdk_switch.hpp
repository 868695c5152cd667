// The complete software switch: DPDK, its devices, and a forwarder and a poll loop for each core.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/expected.hpp"
#include "base/fields.hpp"
#include "base/units.hpp"
#include "softswitch/forwarder.hpp"
#include "softswitch/io/dpdk_poll_loop.hpp"
#include "softswitch/io/dpdk_ports.hpp"

namespace daqloom::softswitch::io {

struct SwitchConfig {
    DAQLOOM_FIELDS(
        SwitchConfig,
        (std::vector<std::string>, eal, "Arguments of DPDK's environment: cores, memory, devices."),
        (DevicesConfig, devices, "Devices of the ports."),
        (ForwarderConfig, forwarder, "Rings, rules and addresses."),
        (std::uint32_t, cores,
         "Number of cores, the first ones of EAL; each owns a share of the ports.", 1),
        (base::Time, longest_sleep,
         "Longest sleep while no frame arrives and no ring is due; 0: it polls all the time."))
};

/// State and counters of the switch; each core is read between two of its turns.
struct SwitchState {
    struct Port {
        DAQLOOM_FIELDS(Port, (DeviceCounters, device, "Counters of the port's device."),
                       (PortCounters, frames, "Counters of frames by this ingress port."),
                       (std::uint32_t, addresses,
                        "Addresses learned at the port, expired ones included."))
    };
    struct Ring {
        DAQLOOM_FIELDS(Ring, (RingCounters, counters, "Counters of the ring."),
                       (std::uint32_t, packets, "Packets held now."),
                       (base::Bytes, bytes, "Bytes held now."),
                       (Waits, waits,
                        "Histogram of waiting times: below 2^16 ps, and in each bucket twice as "
                        "long."))
    };
    DAQLOOM_FIELDS(SwitchState, (std::vector<Port>, ports, "Ports."),
                   (std::vector<Ring>, rings, "Rings."),
                   (LoopCounters, loop, "Counters of the poll loop."),
                   (MacTableCounters, addresses, "Counters of the table of addresses."),
                   (std::size_t, known_addresses, "Addresses in the table."),
                   (std::size_t, rules, "Rules in the table."),
                   (base::Bytes, ring_memory, "Memory of the rings ever touched."),
                   (base::Bytes, shared_peak,
                    "Most bytes held in the shared memory at a time, since peaks were reset; 0 "
                    "without a shared memory."),
                   (std::uint32_t, free_buffers, "Free packet buffers."),
                   (base::Time, at, "Time since the start."))
};

/// A process can have one switch, as DPDK starts once. The cores run in threads of EAL, so that no
/// other thread of the process is bound to them. All functions are thread-safe.
class Switch {
  public:
    /// Starts the switch. Frames are received only after `open`, so that rules can be set before.
    static base::expected<std::unique_ptr<Switch>> start(const SwitchConfig& config);
    /// Stops the switch.
    ~Switch();

    void open();
    /// Calls `what` for the forwarder of each core in turn, between two turns of the core. No frame
    /// is lost, and no core handles a frame while its change is half made.
    void change(const std::function<void(Forwarder&)>& what);
    [[nodiscard]] SwitchState state();
    /// Whether the link of each port is up; delays no core.
    [[nodiscard]] std::vector<bool> links();
    /// Stops receiving, and waits until the frames in rings have left at their pace. Returns false
    /// if frames are left after `timeout`.
    bool drain(base::Time timeout);
    /// Drops the frames in rings and ends the threads; further calls have no effect.
    void stop();

  private:
    struct Running;
    Switch();

    std::unique_ptr<Running> running_;
};

}  // namespace daqloom::softswitch::io
