// Numbers that both Python and the engine need: sizes of headers, and limits.
#include "bindings/casters.hpp"
#include "bindings/subjects.hpp"
#include "ethernet/frame.hpp"
#include "infiniband/fabric_config.hpp"
#include "live/node/epoch/send_queue.hpp"
#include "live/transport/transport.hpp"
#include "protocol/data/mep.hpp"
#include "protocol/data/mfp.hpp"
#include "protocol/data/pattern.hpp"
#include "systems/shift/shift_system.hpp"
#include "transport/rdma/framing.hpp"

namespace daqloom::bindings {

namespace {

void bind_constants(nanobind::module_& module) {
    module.attr("MFP_MAGIC") = protocol::mfp_magic;
    module.attr("MEP_MAGIC") = protocol::mep_magic;
    module.attr("MFP_HEADER_BYTES") = protocol::mfp_header_bytes;
    module.attr("MOST_MFP_FRAGMENTS") = protocol::most_mfp_fragments;
    module.attr("LARGEST_MEAN_FRAGMENT_BYTES") = protocol::PatternSizes::largest_mean;
    module.attr("MOST_MEP_STREAMS") = protocol::largest_mep_streams;
    module.attr("MOST_SIMULATED_STREAMS") = systems::kMostStreams;
    module.attr("MOST_LIVE_STREAMS") = live::most_streams;
    module.attr("BINS") = systems::SystemConfig{}.bins;
    module.attr("TOKEN_BYTES") = live::Token{}.size();
    module.attr("ETHERNET_FRAME_OVERHEAD_BYTES") = ethernet::kFrameOverhead;
    module.attr("ETHERNET_WIRE_OVERHEAD_BYTES") = ethernet::kWireOverhead;
    module.attr("INFINIBAND_BLOCK_BYTES") = infiniband::kBlockBytes;
    module.attr("INFINIBAND_HEADER_BYTES") = transport::kInfinibandFraming.header;
    module.attr("ROCE_HEADER_BYTES") = transport::kRoceFraming.header;
    module.attr("INFINIBAND_RDMA_HEADER_BYTES") = transport::kRdmaHeaderBytes;
    module.attr("INFINIBAND_IMMEDIATE_BYTES") = transport::kImmediateBytes;
    module.attr("INFINIBAND_ACKNOWLEDGE_BYTES") = transport::kInfinibandFraming.acknowledge();
}

const Subject constants(bind_constants);

}  // namespace

}  // namespace daqloom::bindings
