#include "live/transport/libfabric_library.hpp"

#include <dlfcn.h>

#include <optional>

namespace daqloom::live::ofi {

namespace {

template <class Function>
bool resolve(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(handle, name));
    return function != nullptr;
}

std::optional<Library> load() {
    void* handle = ::dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
    Library library{};
    if (handle == nullptr || !resolve(handle, "fi_version", library.version) ||
        !resolve(handle, "fi_getinfo", library.getinfo) ||
        !resolve(handle, "fi_dupinfo", library.dupinfo) ||
        !resolve(handle, "fi_freeinfo", library.freeinfo) ||
        !resolve(handle, "fi_fabric", library.fabric) ||
        !resolve(handle, "fi_strerror", library.strerror)) {
        return std::nullopt;
    }
    return library;
}

}  // namespace

const Library* library() {
    static const std::optional<Library> loaded = load();
    return loaded ? &*loaded : nullptr;
}

}  // namespace daqloom::live::ofi
