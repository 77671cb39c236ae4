#include "backends/registry.hpp"
#include "core/registry.hpp"

namespace backends {

const BackendEntry entries::nn{[](const fast::nn::ModelSpec& spec, std::uint64_t seed,
                                  const fast::nn::BackendOptions& options) {
  return fast::nn::make_backend<float>(spec, seed, options);
}};

namespace {

constexpr fast::Named<const BackendEntry*> entries[] = {
    {"nn", &entries::nn},
    {"torch", &entries::torch},
    {"dlib", &entries::dlib},
};
constexpr fast::Registry registry{entries, "--backend: \"{}\" is unknown; choose one of {}"};

}  // namespace

const BackendEntry& by_name(std::string_view name) { return *registry.at(name).value; }

}  // namespace backends
