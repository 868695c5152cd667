// libFuzzer: no rack that can be described loses or wins a byte or a cell.
#include "base/fuzz_test.hpp"
#include "systems/rack/check_test.hpp"

DAQLOOM_FUZZ([](auto input) {
    using namespace daqloom::systems;
    return broken_promise(any_small_rack(input), 1);
})
