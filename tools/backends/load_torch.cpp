// LibTorch takes a second of every rank to load: only a run that asks for it does.
#include <dlfcn.h>

#include <fast/core/error.hpp>
#include <filesystem>

#include "backends/backends.hpp"
#include "backends/registry.hpp"

namespace backends {
namespace {

MakeTorch* load() {
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  const auto module = program.parent_path() / FAST_TORCH_MODULE;
  void* library = dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* function = library == nullptr ? nullptr : dlsym(library, make_torch_symbol);
  const char* why = function == nullptr ? dlerror() : nullptr;
  fast::require(function != nullptr, fast::ErrorKind::resource,
                "--backend torch: its module cannot be loaded ({}); build or install all programs, "
                "or choose another backend",
                why == nullptr ? "?" : why);
  return reinterpret_cast<MakeTorch*>(function);
}

}  // namespace

const BackendEntry entries::torch{[](const fast::nn::ModelSpec& spec, std::uint64_t seed,
                                     const fast::nn::BackendOptions& options) {
  return std::unique_ptr<fast::Backend>(load()(spec, seed, options));
}};

}  // namespace backends
