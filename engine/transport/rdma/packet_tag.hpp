// What the transport writes into the tag of a packet: the queue pair, and what the packet means.
#pragma once

#include <cstdint>

namespace daqloom::transport {

/// An acknowledge of this packet and of all before.
inline constexpr std::uint32_t kAcknowledge = std::uint32_t{1} << 31;
/// A NAK: this packet is missing, all before are acknowledged.
inline constexpr std::uint32_t kNak = std::uint32_t{1} << 30;
/// The packet requests an acknowledge.
inline constexpr std::uint32_t kAckRequest = std::uint32_t{1} << 29;
inline constexpr std::uint32_t kQueuePair = kAckRequest - 1;

/// From the responder to the requester.
constexpr bool is_response(std::uint32_t tag) { return (tag & (kAcknowledge | kNak)) != 0; }

}  // namespace daqloom::transport
