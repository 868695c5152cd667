// Serves a unit's buffers to processes of users, which write data or read built events.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/expected.hpp"
#include "live/memory/buffer.hpp"
#include "live/memory/buffer_client.hpp"
#include "live/memory/handover.hpp"

namespace daqloom::live {

/// Makes a buffer for each process that attaches to a side. The server's thread calls it.
class Attendant {
  public:
    virtual ~Attendant() = default;
    /// The buffer for process `peer`, valid until `leave(slot)`. Fails with the reason for refusing
    /// the process.
    virtual base::expected<const Buffer*> admit(std::size_t slot, pid_t peer) = 0;
    /// The process of this slot has ended or detached.
    virtual void leave(std::size_t slot) = 0;
};

/// One side of a buffer that another process may attach to; or, with an attendant, a side that as
/// many processes may attach to as there are slots, each with its own buffer.
struct BufferOffer {
    std::string name;
    const Buffer* buffer = nullptr;
    BufferSide side = BufferSide::writer;
    Attendant* attendant = nullptr;
    std::size_t slots = 1;
};

/// Serves the offers by its own thread, which sleeps except when processes attach or detach, and
/// touches no data. At most one process has a side or a slot; when this process ends in any way,
/// the place is free immediately.
class BufferServer {
  public:
    static constexpr base::Time patience = base::seconds(1);  ///< wait for a hello
    static constexpr std::size_t most_visitors = 16;  ///< limit on connections without a hello

    /// Offers with the same name are sides of the same buffer. Buffers and attendants must outlive
    /// the server.
    static base::expected<std::unique_ptr<BufferServer>> serve(std::vector<BufferOffer> offers);

    ~BufferServer();
    BufferServer(const BufferServer&) = delete;
    BufferServer& operator=(const BufferServer&) = delete;

  private:
    struct Place {
        BufferOffer offer;
        std::size_t slot = 0;
        std::optional<Handover> connection = {};  ///< to the process that holds the side
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
    /// A place of this side, a free one if there is one; null: the side is not offered.
    [[nodiscard]] Place* find(const std::string& name, std::byte side);
    static void free(Place& place);

    std::vector<Place> places_;
    std::vector<Door> doors_;
    std::vector<Visitor> visitors_;
    OwnedFd stop_;
    std::atomic<bool> is_stopping_{false};
    std::thread thread_;
};

}  // namespace daqloom::live
