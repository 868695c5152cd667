// Registers static_window.bpf.c with the kernel for as long as this program lives.
//
//   load_static_window OBJECT      prints "registered", then waits to be ended
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <cerrno>

#include "wire.hpp"

namespace {

using kernel_incast::give_up;

// Values of linux/bpf.h since Linux 6.4, which the header of an older distribution lacks.
constexpr std::uint32_t kMapWantsLink = 1U << 13;              // BPF_F_LINK
constexpr auto kStructOps = static_cast<bpf_attach_type>(44);  // BPF_STRUCT_OPS

// The kernel removes what hangs on a link when its last descriptor closes, that is when this
// process ends, however it ends. Without a link the registration would outlive the process.
void register_with_link(bpf_object* object) {
    bpf_map* map = bpf_object__find_map_by_name(object, "static_window");
    if (map == nullptr) give_up("the object has no map 'static_window'");
    if (bpf_map__set_map_flags(map, kMapWantsLink) != 0) give_up("BPF_F_LINK");
    if (bpf_object__load(object) != 0) give_up("loading the static window");
    if (bpf_map__attach_struct_ops(map) == nullptr) give_up("filling the static window's map");
    if (bpf_link_create(bpf_map__fd(map), 0, kStructOps, nullptr) < 0) {
        give_up("registering the static window");
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: load_static_window OBJECT\n");
        return 2;
    }
    bpf_object* object = bpf_object__open(argv[1]);
    if (object == nullptr) give_up(argv[1]);
    register_with_link(object);
    std::puts("registered");
    std::fflush(stdout);
    for (;;) pause();
}
