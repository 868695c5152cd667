// iSLIP: outputs grant, inputs accept, both in round robin.
//
// Source: N. McKeown, "The iSLIP scheduling algorithm for input-queued switches", IEEE/ACM
// Transactions on Networking 7 (1999) 188–201. An iteration has three steps:
//
//   request   each input asks every output that it has a packet for,
//   grant     each output without a partner picks the next input behind its pointer that asks,
//   accept    each input picks the next output behind its pointer that grants.
//
// A pointer moves only when a grant is accepted, and only in the first iteration. Outputs that
// granted to the same input then point to different inputs, and no request waits for ever. Further
// iterations match the remaining ports.
//
// In the paper, packets are cells: all ports are free at the beginning of a slot and are matched
// together. Here, packets have any length and ports become free one by one: a matching is among the
// ports that are free at an instant, often a single output. The paper's bound on every wait, for
// all traffic, holds here only while packets begin together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/index.hpp"
#include "infiniband/fabric_config.hpp"
#include "infiniband/packet.hpp"
#include "infiniband/port_set.hpp"

namespace daqloom::infiniband {

/// The grants and accepts of all switches of a fabric.
class Islip {
  public:
    Islip() = default;
    Islip(std::size_t nodes, std::size_t ports, std::uint32_t widest)
        : inputs_(nodes, widest), grants_(ports, widest), accepted_(ports, kNoPlace) {}

    /// Grants an input to an output of a node; `place` and `output` number the node's ports from 0.
    void grant(NodeIndex node, PortIndex input, std::uint32_t place, std::uint32_t output) {
        inputs_.add(node, place);
        grants_.add(input, output);
    }

    /// Lets each input accept its grants in turn, while `accept(input, output)` returns true.
    /// Pointers move only if `first`, in the first iteration. Removes all grants.
    template <class Accept>
    void accept(NodeIndex node, PortIndex first_port, bool first, Accept accept) {
        inputs_.each(node, [&](std::uint32_t place) {
            const PortIndex input = first_port + place;
            std::uint32_t output = grants_.next_in_turn(input, accepted_[input] + 1);
            while (output != kNoPlace && accept(input, output)) {
                accepted_[input] = first ? output : accepted_[input];
                grants_.remove(input, output);
                output = grants_.next_in_turn(input, output + 1);
            }
            grants_.clear(input);
        });
        inputs_.clear(node);
    }

  private:
    PortSets<NodeIndex> inputs_;                      ///< inputs with grants
    PortSets<PortIndex> grants_;                      ///< outputs that grant to an input
    base::Table<PortIndex, std::uint32_t> accepted_;  ///< output before the pointer
};

}  // namespace daqloom::infiniband
