#include "backends/registry.hpp"
#include "core/registry.hpp"

namespace backends {
namespace {

constexpr fast::Named<const Row*> entries[] = {
    {"nn", &rows::nn},
    {"torch", &rows::torch},
    {"dlib", &rows::dlib},
};
constexpr fast::Registry registry{entries, "--backend: \"{}\" is unknown; choose one of {}"};

}  // namespace

const Row& by_name(std::string_view name) { return *registry.at(name).value; }

}  // namespace backends
