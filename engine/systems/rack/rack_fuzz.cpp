// libFuzzer target: bytes and cells are conserved in every rack that a configuration describes.
#include "base/fuzz_test.hpp"
#include "systems/rack/check_test.hpp"

DAQLOOM_FUZZ([](auto input) {
    using namespace daqloom::systems;
    return broken_promise(any_small_rack(input), 1);
})
