// The software switch as a whole: DPDK's environment, its devices, the forwarder, and the thread in
// which they turn.
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
        (std::uint32_t, cores, "Cores, the first ones of EAL: each has its share of the ports.", 1),
        (base::Time, longest_sleep,
         "Longest sleep while nothing comes and nothing is due; 0: it polls all the time."))
};

/// What stands and what has been counted, at one moment between two turns.
struct SwitchState {
    struct Port {
        DeviceCounters device;
        PortCounters frames;
        std::uint32_t addresses = 0;  ///< learned there, also those too old
    };
    struct Ring {
        RingCounters counters;
        std::uint32_t packets = 0;  ///< held now
        base::Bytes bytes = 0;
        Waits waits{};
    };
    std::vector<Port> ports;
    std::vector<Ring> rings;
    LoopCounters loop;
    MacTableCounters addresses;
    std::size_t known_addresses = 0;
    std::size_t rules = 0;
    base::Bytes ring_memory = 0;  ///< ever touched
    base::Bytes shared_peak = 0;  ///< of all rings at a time; 0 without a shared memory
    std::uint32_t free_buffers = 0;
    base::Time at;  ///< since its start
};

/// One for a process and its life: DPDK starts once. Its threads are those of EAL, so that no other
/// thread of the process is bound to the switch's cores. All calls may come from any thread.
class Switch {
  public:
    /// It takes no frames before `open`, so that rules are there before the first one.
    static base::expected<std::unique_ptr<Switch>> start(const SwitchConfig& config);
    /// Stops it.
    ~Switch();

    void open();
    /// Between two turns of a core, for the forwarder of each in turn: no frame is lost, nor does
    /// one that goes through one core see half of what changes.
    void change(const std::function<void(Forwarder&)>& what);
    [[nodiscard]] SwitchState state();
    /// Whether the link of each port is up; no core is held up for it.
    [[nodiscard]] std::vector<bool> links();
    /// Takes no more frames from devices, and waits until those that it holds have left at their
    /// pace. False: some are left after this time.
    bool drain(base::Time timeout);
    /// What is held is dropped. Changes nothing any more.
    void stop();

  private:
    struct Running;
    Switch();

    std::unique_ptr<Running> running_;
};

}  // namespace daqloom::softswitch::io
