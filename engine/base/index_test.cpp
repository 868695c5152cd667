#include "base/index.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <type_traits>
#include <unordered_set>

namespace daqloom::base {
namespace {

using NodeIndex = Index<struct NodeTag>;
using PortIndex = Index<struct PortTag>;
using LaneIndex = Index<struct LaneTag, std::uint8_t>;

template <class Table, class Key>
concept IndexedBy = requires(const Table& table, Key key) { table[key]; };
template <class A, class B>
concept Subtractable = requires(A a, B b) { a - b; };

// An index converts neither to an index of another kind nor to a number.
static_assert(!std::convertible_to<PortIndex, NodeIndex>);
static_assert(!std::constructible_from<NodeIndex, PortIndex>);
static_assert(!std::assignable_from<NodeIndex&, PortIndex>);
static_assert(!std::convertible_to<std::uint32_t, NodeIndex>);
static_assert(!std::convertible_to<NodeIndex, std::uint32_t>);
static_assert(std::constructible_from<NodeIndex, std::size_t>);
static_assert(!std::equality_comparable_with<NodeIndex, PortIndex>);
static_assert(std::totally_ordered<NodeIndex>);
static_assert(Subtractable<NodeIndex, NodeIndex> && !Subtractable<NodeIndex, PortIndex>);
static_assert(IndexedBy<Table<NodeIndex, int>, NodeIndex>);
static_assert(!IndexedBy<Table<NodeIndex, int>, PortIndex>);
static_assert(!IndexedBy<Table<NodeIndex, int>, std::uint32_t>);

// An index has the size of its number.
static_assert(sizeof(NodeIndex) == 4 && sizeof(LaneIndex) == 1);
static_assert(std::is_trivially_copyable_v<NodeIndex>);
static_assert(sizeof(Table<NodeIndex, int>) == sizeof(std::vector<int>));
static_assert(std::forward_iterator<IndexRange<NodeIndex>::Iterator>);

TEST(Index, CountsPlacesFromZero) {
    constexpr NodeIndex first;
    EXPECT_EQ(first.value(), 0U);
    EXPECT_EQ((first + 3).value(), 3U);
    EXPECT_EQ(first + 3 - first, 3U);
    EXPECT_LT(first, first + 1);
    NodeIndex next = first;
    EXPECT_EQ(next++, first);
    EXPECT_EQ(++next, NodeIndex(2));
}

TEST(Index, HasOneThatIsNoPlace) {
    EXPECT_EQ(NodeIndex::none().value(), ~std::uint32_t{0});
    EXPECT_EQ(LaneIndex::none().value(), 255U);
    EXPECT_NE(NodeIndex::none(), NodeIndex());
}

TEST(Index, CanBeHashed) {
    const std::unordered_set<NodeIndex> nodes{NodeIndex(1), NodeIndex(5), NodeIndex(1)};
    EXPECT_EQ(nodes.size(), 2U);
}

TEST(IndexRange, GoesUpToItsEnd) {
    std::vector<NodeIndex> nodes;
    for (const NodeIndex node : IndexRange<NodeIndex>(NodeIndex(2), NodeIndex(5))) {
        nodes.push_back(node);
    }
    EXPECT_EQ(nodes, (std::vector<NodeIndex>{NodeIndex(2), NodeIndex(3), NodeIndex(4)}));
    const IndexRange<NodeIndex> none(0);
    EXPECT_EQ(none.begin(), none.end());
    EXPECT_EQ(std::ranges::distance(IndexRange<NodeIndex>(7)), 7);
}

TEST(Table, ReturnsTheIndexOfAnAppendedElement) {
    Table<PortIndex, char> ports;
    EXPECT_EQ(ports.push_back('a'), PortIndex(0));
    const PortIndex second = ports.push_back('b');
    ports[second] = 'c';
    EXPECT_EQ(ports[second], 'c');
    EXPECT_TRUE(ports.contains(second));
    EXPECT_FALSE(ports.contains(second + 1));
    EXPECT_EQ(ports.indices().size(), 2U);
}

TEST(Table, IsListedComparedAndResizedAndHoldsFlags) {
    Table<PortIndex, int> lengths{3, 1};
    EXPECT_EQ(lengths[PortIndex(0)], 3);
    EXPECT_EQ(lengths.size(), 2U);
    EXPECT_EQ(lengths, (Table<PortIndex, int>{3, 1}));
    EXPECT_NE(lengths, (Table<PortIndex, int>{3, 2}));
    lengths.resize(4, 7);
    EXPECT_EQ(lengths, (Table<PortIndex, int>{3, 1, 7, 7}));
    Table<NodeIndex, bool> taken(3);
    taken[NodeIndex(1)] = true;
    EXPECT_EQ(std::ranges::count(taken, true), 1);
}

}  // namespace
}  // namespace daqloom::base
