#include "sim/radix_wheel.hpp"

namespace daqloom::sim {

RadixWheel::RadixWheel() {
    for (auto& slot : slots_) {
        slot = {nullptr, &slot.head};
    }
}

base::Time RadixWheel::next_time() const {
    assert(!empty());
    if (front_ != nullptr) {
        return front_->event.at;
    }
    const auto& slot = slots_[first_slot()];
    const Node* node = slot.head;
    auto earliest = node->event.at;
    while (&node->next != slot.end) {
        node = node->next;
        earliest = std::min(earliest, node->event.at);
    }
    return earliest;
}

void RadixWheel::reserve(std::size_t events) {
    while (pool_size_ < events) {
        grow();
    }
}

void RadixWheel::clear() {
    while (!empty()) {
        pop();
    }
    cursor_ = 0;
    now_ = base::Time::zero();
    front_last_ = base::Time{-1};
    peak_size_ = 0;
}

/// Moves a slot of level 0 to the front: any number of events, all at one time.
void RadixWheel::hand_over_equals(Node* oldest) {
    front_ = front_tail_ = oldest;
    while (front_tail_->next != nullptr) {
        front_tail_ = front_tail_->next;
    }
}

void RadixWheel::insert_in_front(Node* node) {
    const auto at = node->event.at;
    node->next = nullptr;
    if (front_ == nullptr) {
        front_ = front_tail_ = node;
        front_last_ = at;
        return;
    }
    if (at == front_last_) {  // separate, so that many equal times need no walk
        front_tail_ = front_tail_->next = node;
        return;
    }
    Node** place = &front_;
    for (int steps = 0; (*place)->event.at <= at; place = &(*place)->next) {
        if (++steps > kFrontCapacity) {
            // The front has grown too long for insertion by walking: its events return to the
            // wheel, where they now belong on lower levels than before.
            Node* const all = std::exchange(front_, nullptr);
            front_last_ = now_ - base::Time{1};
            spread(all);
            insert_in_wheel(node);
            return;
        }
    }
    node->next = std::exchange(*place, node);
}

void RadixWheel::grow() {
    const auto count = std::max<std::size_t>(256, pool_size_);
    auto& nodes = pool_.emplace_back(std::make_unique<Node[]>(count));
    pool_size_ += count;
    for (std::size_t i = count; i-- > 0;) {
        nodes[i].next = std::exchange(free_, &nodes[i]);
    }
}

}  // namespace daqloom::sim
