#include "live/transport/mpi/world.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace daqloom::live::mpi {

std::span<Operation* const> Requests::complete(const Library& library) {
    done_.clear();
    int places[Library::most_at_once];
    for (std::size_t end = bits_.size(); end > 0;) {
        const std::size_t count = std::min<std::size_t>(end, Library::most_at_once);
        end -= count;
        const int done = library.completed(static_cast<int>(count), &bits_[end], places);
        if (done < 0) {
            library.abort();
        }
        std::sort(places, places + std::max(done, 0));
        for (int i = done - 1; i >= 0; --i) {  // the requests behind this one have been tested
            const std::size_t place = end + static_cast<std::size_t>(places[i]);
            done_.push_back(std::exchange(owners_[place], owners_.back()));
            bits_[place] = bits_.back();
            owners_.pop_back();
            bits_.pop_back();
        }
    }
    return done_;
}

base::expected<World*> World::join() {
    static std::unique_ptr<World> joined;  // ends MPI at the end of the process
    if (!joined) {
        DAQLOOM_TRY(library, load());
        std::unique_ptr<World> made(new World(library));
        if (!made->is_open_) {
            return base::system_failure(
                "MPI does not start in this process; its reason is in the log of unit 0");
        }
        joined = std::move(made);
    }
    return joined.get();
}

World::World(const Library& library)
    : library_(library),
      is_open_(library.open(&rank_, &ranks_) == 0),
      bytes_(kRooms * most_record),
      rooms_(kRooms) {}

World::~World() {
    if (is_open_) {
        library_.close();
    }
}

bool World::look() {
    while (received_ - dropped_ < kRooms) {
        Room& room = rooms_[received_ % kRooms];
        room.length =
            library_.next(records, const_cast<std::byte*>(bytes_of(received_)),
                          static_cast<int>(most_record), &room.from, &room.tag, &room.request);
        if (room.length < 0) {
            break;
        }
        ++received_;
    }
    int place = 0;
    if (!is_complete_ && received_ != dropped_) {
        // A record that is too long fails, and is complete as well.
        is_complete_ = library_.completed(1, &rooms_[dropped_ % kRooms].request, &place) != 0;
    }
    return is_complete_;
}

Record World::oldest() const {
    const Room& room = rooms_[dropped_ % kRooms];
    const auto length = static_cast<std::size_t>(room.length);
    return {room.from, room.tag, {bytes_of(dropped_), length <= most_record ? length : 0}};
}

void World::drop_oldest() {
    ++dropped_;
    is_complete_ = false;
}

void World::keep(std::vector<std::byte> rooms, Requests requests) {
    remains_.push_back({std::move(rooms), std::move(requests)});
    std::erase_if(remains_, [this](Remains& old) {
        old.requests.complete(library_);
        return old.requests.empty();
    });
}

}  // namespace daqloom::live::mpi
