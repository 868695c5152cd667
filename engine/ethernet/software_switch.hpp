// A simulated software switch: a server between links that runs the forwarding code of softswitch/.
//
//   link ──> [ descriptors  ] ──> core: batch ──> ring of the    ──> core ──> [ descriptors   ]
//            [ of the input ]                     destination                 [ of the output ]
//                                                                                     └──> link
//
// Core c of n serves the ports with numbers c, c + n, c + 2n, … in turns: it takes a batch from
// each input, which costs time, puts it into rings, and sends the frames that are due from rings.
// The device drops frames without a free descriptor; the core drops frames for a full ring.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/pool.hpp"
#include "base/ring.hpp"
#include "base/units.hpp"
#include "ethernet/frame.hpp"
#include "ethernet/software_switch_config.hpp"
#include "softswitch/output_queues.hpp"
#include "softswitch/pauses.hpp"

namespace daqloom::ethernet {

class SoftwareSwitch {
  public:
    /// Frames that a core takes from an input, or passes to an output, at a time.
    static constexpr std::uint32_t kBatch = 32;

    /// A host with a separate set of rings, and the port by which frames for the host leave.
    struct Way {
        NodeIndex host;
        std::uint16_t port = 0;
    };

    /// `classes`: number of classes at each port, in strict priority; 1: no classes. `mark`: bytes
    /// in a ring above which arriving frames are marked; 0: no marks.
    SoftwareSwitch(const SoftwareSwitchConfig& config, std::uint32_t ports, std::uint32_t classes,
                   base::Bytes mark, std::span<const Way> ways);

    /// Takes in a frame; returns false if no descriptor is free.
    bool receive(std::uint16_t input, std::uint16_t output, const Frame& frame) {
        base::Ring<Descriptor>& waiting = inputs_[input];
        if (waiting.size() >= config_.descriptors) {
            return false;
        }
        waiting.push({frames_.put(frame), output, input});
        return true;
    }

    /// Wakes a core at `at`, because frames came or an output has space again. Returns the time at
    /// which to call `turn` for the core, unless a call by this time is already pending.
    std::optional<base::Time> wake(std::uint32_t core, base::Time at);
    [[nodiscard]] std::uint32_t core_of(std::uint16_t port) const { return port % config_.cores; }
    [[nodiscard]] std::uint32_t cores() const { return config_.cores; }

    /// Runs a turn of a core. `out` is the network around the switch:
    ///   out.room(port)             frames that the output's descriptors have room for
    ///   out.send(port, frame)
    ///   out.drop(port, frame)
    ///   out.mark(frame)         ECN: congestion experienced
    ///   out.wake(core)          the core has frames to send
    ///   out.pause(port, on)     pauses the sender to this port, or ends its pause
    /// Returns the time of the next turn, if one is due.
    template <class Out>
    std::optional<base::Time> turn(std::uint32_t number, base::Time now, Out& out) {
        Core& core = cores_[number];
        if (core.wakes_at != now) {
            return std::nullopt;  // a turn at an earlier time replaced this one
        }
        queue(core, now, out);
        core.queues.advance(now);
        std::uint32_t bursts = 0;
        base::Bytes moved = 0;
        bool goes_on = false;
        for (std::uint16_t port = static_cast<std::uint16_t>(number); port < inputs_.size();
             port = static_cast<std::uint16_t>(port + config_.cores)) {
            if (core.queues.has_due(softswitch::PortIndex(port))) {
                const bool sends = send(core, port, now, out);
                bursts += sends ? 1 : 0;
                goes_on |= sends && core.queues.has_due(softswitch::PortIndex(port));
            }
        }
        update_pauses(core, out);
        for (std::uint16_t port = static_cast<std::uint16_t>(number); port < inputs_.size();
             port = static_cast<std::uint16_t>(port + config_.cores)) {
            const std::size_t before = core.batch.size();
            base::Ring<Descriptor>& waiting = inputs_[port];
            for (std::uint32_t i = 0; i < kBatch && !waiting.empty(); ++i) {
                core.batch.push_back(waiting.front());
                moved += frames_[waiting.front().frame].bytes;
                waiting.pop();
            }
            bursts += core.batch.size() > before ? 1 : 0;
        }
        return end_of_turn(core, now, bursts, moved, goes_on);
    }

    /// Bytes in descriptors, in batches of cores and in rings, summed over all cores.
    [[nodiscard]] base::Bytes bytes_inside() const;
    [[nodiscard]] std::size_t memory() const { return frames_.memory(); }

  private:
    struct Descriptor {
        std::uint32_t frame = 0;  ///< place in the pool
        std::uint16_t output = 0;
        std::uint16_t input = 0;
    };
    struct Core {
        explicit Core(const softswitch::OutputConfig& config) : queues(config) {}

        softswitch::OutputQueues queues;  ///< rings of its ports
        std::vector<Descriptor> batch;    ///< frames taken from inputs, in processing
        base::Time free_at;               ///< end of its turn
        base::Time wakes_at = base::Time::never();
    };

    [[nodiscard]] softswitch::RingIndex ring_of(std::uint16_t output, const Frame& frame) const {
        const std::uint32_t traffic_class = classes_ > 1 ? frame.traffic_class().value() : 0;
        const auto found = ways_.find({frame.destination(), output});
        return softswitch::RingIndex((found != ways_.end() ? found->second : first_of_[output]) +
                                     traffic_class);
    }

    /// Puts the batch of a core into rings of this core or of others.
    template <class Out>
    void queue(Core& core, base::Time now, Out& out) {
        struct Fate {
            void drop(std::uint64_t handle) {
                const auto slot = static_cast<std::uint32_t>(handle);
                out.drop(output, self.frames_[slot]);
                self.frames_.release(slot);
            }
            void mark(std::uint64_t handle) {
                out.mark(self.frames_[static_cast<std::uint32_t>(handle)]);
            }
            SoftwareSwitch& self;
            Out& out;
            std::uint16_t output;
        };
        for (const Descriptor& descriptor : core.batch) {
            const Frame& frame = frames_[descriptor.frame];
            const std::uint32_t other = core_of(descriptor.output);
            const softswitch::Packet packet{descriptor.frame, frame.bytes,
                                            ring_of(descriptor.output, frame)};
            cores_[other].queues.in({&packet, 1}, now, Fate{*this, out, descriptor.output});
            if (pauses_) [[unlikely]] {
                Pausing<Out> pausing{out};
                pauses_->on_frame(packet.ring, softswitch::PortIndex(descriptor.input), core.queues,
                                  pausing);
            }
            if (&cores_[other] != &core) {
                out.wake(other);
            }
        }
        core.batch.clear();
    }

    template <class Out>
    struct Pausing {
        void pause(softswitch::PortIndex port, bool on) { out.pause(port.value(), on); }
        Out& out;
    };
    template <class Out>
    void update_pauses(const Core& core, Out& out) {
        if (pauses_) [[unlikely]] {
            Pausing<Out> pausing{out};
            pauses_->update(core.queues, pausing);
        }
    }

    template <class Out>
    bool send(Core& core, std::uint16_t port, base::Time now, Out& out) {
        std::array<std::uint64_t, kBatch> handles;
        const std::size_t room = std::min<std::size_t>(kBatch, out.room(port));
        const std::size_t count =
            core.queues.out(softswitch::PortIndex(port), now, std::span(handles).first(room));
        for (std::size_t i = 0; i < count; ++i) {
            const auto slot = static_cast<std::uint32_t>(handles[i]);
            out.send(port, frames_[slot]);
            frames_.release(slot);
        }
        return count > 0;
    }

    std::optional<base::Time> end_of_turn(Core& core, base::Time now, std::uint32_t bursts,
                                          base::Bytes moved, bool goes_on);

    SoftwareSwitchConfig config_;
    std::uint32_t classes_;
    base::Pool<Frame> frames_;
    std::vector<base::Ring<Descriptor>> inputs_;  ///< descriptors in use
    std::vector<Core> cores_;
    std::vector<std::uint32_t> first_of_;  ///< by port, first ring in its core; without a way
    std::map<std::pair<NodeIndex, std::uint16_t>, std::uint32_t> ways_;
    std::optional<softswitch::Pauses> pauses_;  ///< with a single core only
    base::Time memory_free_at_;
};

}  // namespace daqloom::ethernet
