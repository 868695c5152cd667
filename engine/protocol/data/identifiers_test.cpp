#include "protocol/data/identifiers.hpp"

#include <concepts>

#include "protocol/schedule/linear_shift.hpp"

namespace daqloom::protocol {
namespace {

/// Numbers of units of different kinds, and of slots, are different types.
template <class A, class B>
concept Different = !std::convertible_to<A, B> && !std::convertible_to<B, A> &&
                    !std::constructible_from<A, B> && !std::equality_comparable_with<A, B>;
static_assert(Different<ReadoutIndex, BuilderIndex>);
static_assert(Different<ReadoutIndex, SlotIndex>);
static_assert(Different<BuilderIndex, SlotIndex>);
static_assert(Different<ReadoutIndex, StreamIndex>);

}  // namespace
}  // namespace daqloom::protocol
