// Serves a unit's buffers to processes of users, which write data or read built events.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/expected.hpp"
#include "live/memory/buffer.hpp"
#include "live/memory/buffer_client.hpp"
#include "live/memory/handover.hpp"

namespace daqloom::live {

/// One side of a buffer that another process may attach to.
struct BufferOffer {
    std::string name;
    const Buffer* buffer = nullptr;
    BufferSide side = BufferSide::writer;
};

/// Serves the offers by its own thread, which sleeps except when processes attach or detach, and
/// touches no data. At most one process has a side; when this process ends in any way, the side is
/// free at once.
class BufferServer {
  public:
    struct Counters {
        std::atomic<std::uint64_t> attached{0};
        std::atomic<std::uint64_t> refused_taken{0};      ///< another process has the side
        std::atomic<std::uint64_t> refused_malformed{0};  ///< the first message is invalid
        std::atomic<std::uint64_t> refused_silent{0};     ///< no first message in time
    };

    static constexpr base::Time patience = base::seconds(1);  ///< wait for a hello
    static constexpr std::size_t most_visitors = 16;  ///< limit on connections without a hello

    /// Offers with the same name are sides of the same buffer. The buffers must outlive the server.
    static base::expected<std::unique_ptr<BufferServer>> serve(std::vector<BufferOffer> offers);

    ~BufferServer();
    BufferServer(const BufferServer&) = delete;
    BufferServer& operator=(const BufferServer&) = delete;

    [[nodiscard]] const Counters& counters() const { return counters_; }
    /// The process that holds the offer with this number; 0: none.
    [[nodiscard]] pid_t holder(std::size_t offer) const { return places_[offer]->holder.load(); }

  private:
    struct Place {
        BufferOffer offer;
        std::unique_ptr<Handover> connection;  ///< connection of the holder
        std::atomic<pid_t> holder{0};
    };
    struct Door {
        std::string name;
        HandoverListener listener;
    };
    struct Visitor {
        std::string name;  ///< name under which it connected
        Handover connection;
        base::Time until;
    };

    BufferServer() = default;

    void run();
    void wait() const;
    void free_abandoned();
    void let_in();
    void receive_requests();
    void answer(Visitor& visitor, const Parcel& hello);
    [[nodiscard]] Place* find(const std::string& name, std::byte side);

    std::vector<std::unique_ptr<Place>> places_;
    std::vector<Door> doors_;
    std::vector<Visitor> visitors_;
    Counters counters_;
    OwnedFd stop_;
    std::atomic<bool> is_stopping_{false};
    std::thread thread_;
};

}  // namespace daqloom::live
