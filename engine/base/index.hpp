// Typed indices: the index of a node converts neither to the index of a port nor to a number.
//
//   using NodeIndex = base::Index<struct NodeTag>;
//   base::Table<NodeIndex, Node> nodes;
//   for (const NodeIndex node : nodes.indices()) { nodes[node] … }
#pragma once

#include <cassert>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace daqloom::base {

/// Index of an element in a table, from 0. `Tag` distinguishes the tables and may be an incomplete
/// type; `Number` is the type in which the index is stored.
template <class Tag, std::unsigned_integral Number = std::uint32_t>
class Index {
  public:
    using number_type = Number;

    constexpr Index() = default;
    constexpr explicit Index(std::integral auto value) : value_(static_cast<Number>(value)) {
        assert(std::cmp_equal(value_, value));
    }

    /// The index of no element.
    static constexpr Index none() { return Index(std::numeric_limits<Number>::max()); }

    [[nodiscard]] constexpr Number value() const { return value_; }

    constexpr Index& operator++() {
        ++value_;
        return *this;
    }
    constexpr Index operator++(int) {
        const Index before = *this;
        ++value_;
        return before;
    }
    /// Index `places` elements after this one.
    [[nodiscard]] constexpr Index operator+(std::size_t places) const {
        return Index(value_ + places);
    }
    /// Number of elements from `first` to this index; `first` must not be greater.
    [[nodiscard]] constexpr Number operator-(Index first) const {
        return static_cast<Number>(value_ - first.value_);
    }

    friend constexpr auto operator<=>(Index, Index) = default;

  private:
    Number value_ = 0;
};

/// Range of indices, the end excluded.
template <class Index>
class IndexRange {
  public:
    class Iterator {
      public:
        using value_type = Index;
        using difference_type = std::ptrdiff_t;

        constexpr Iterator() = default;
        constexpr explicit Iterator(Index at) : at_(at) {}
        [[nodiscard]] constexpr Index operator*() const { return at_; }
        constexpr Iterator& operator++() {
            ++at_;
            return *this;
        }
        constexpr Iterator operator++(int) { return Iterator(at_++); }
        friend constexpr bool operator==(Iterator, Iterator) = default;

      private:
        Index at_;
    };

    constexpr explicit IndexRange(std::size_t count) : end_(count) {}
    constexpr IndexRange(Index first, Index end) : first_(first), end_(end) {}

    [[nodiscard]] constexpr Iterator begin() const { return Iterator(first_); }
    [[nodiscard]] constexpr Iterator end() const { return Iterator(end_); }
    [[nodiscard]] constexpr std::size_t size() const { return end_ - first_; }

  private:
    Index first_;
    Index end_;
};

/// A vector whose elements have indices of one type.
template <class Index, class T, class Allocator = std::allocator<T>>
class Table {
  public:
    using value_type = T;

    Table() = default;
    explicit Table(std::size_t size) : values_(size) {}
    Table(std::size_t size, const T& value) : values_(size, value) {}
    Table(std::initializer_list<T> values) : values_(values) {}

    [[nodiscard]] decltype(auto) operator[](Index index) { return values_[index.value()]; }
    [[nodiscard]] decltype(auto) operator[](Index index) const { return values_[index.value()]; }

    /// Appends an element and returns its index.
    Index push_back(const T& value) {
        values_.push_back(value);
        return Index(values_.size() - 1);
    }
    Index push_back(T&& value) {
        values_.push_back(std::move(value));
        return Index(values_.size() - 1);
    }

    [[nodiscard]] IndexRange<Index> indices() const { return IndexRange<Index>(size()); }
    [[nodiscard]] bool contains(Index index) const { return index.value() < size(); }
    [[nodiscard]] std::size_t size() const { return values_.size(); }
    [[nodiscard]] bool empty() const { return values_.empty(); }
    /// Size of the array (B).
    [[nodiscard]] std::size_t memory() const { return values_.capacity() * sizeof(T); }

    void reserve(std::size_t size) { values_.reserve(size); }
    void resize(std::size_t size) { values_.resize(size); }
    void resize(std::size_t size, const T& value) { values_.resize(size, value); }
    void assign(std::size_t size, const T& value) { values_.assign(size, value); }

    [[nodiscard]] auto begin() { return values_.begin(); }
    [[nodiscard]] auto end() { return values_.end(); }
    [[nodiscard]] auto begin() const { return values_.begin(); }
    [[nodiscard]] auto end() const { return values_.end(); }
    [[nodiscard]] decltype(auto) front() { return values_.front(); }
    [[nodiscard]] decltype(auto) front() const { return values_.front(); }
    [[nodiscard]] decltype(auto) back() { return values_.back(); }
    [[nodiscard]] decltype(auto) back() const { return values_.back(); }

    friend bool operator==(const Table&, const Table&) = default;

  private:
    std::vector<T, Allocator> values_;
};

}  // namespace daqloom::base

/// For sets and maps of indices.
template <class Tag, class Number>
struct std::hash<daqloom::base::Index<Tag, Number>> {
    std::size_t operator()(daqloom::base::Index<Tag, Number> index) const { return index.value(); }
};
