# Recipe for Spack. Its specification was resolved by Spack 0.23 (of October 2024) with Debian's libraries as external
# packages, and began to build; no build was finished. Versions of dependencies are those of Debian 12, with which FAST is
# tested. The source is the checkout that has this file.
import os

from spack.package import *

try:
    from spack_repo.builtin.build_systems.cmake import CMakePackage
except ImportError:  # Spack before 1.0 has it in spack.package
    pass


class FastDecentralized(CMakePackage):
    """Nearest-neighbor decentralized training of deep networks over one-sided MPI."""

    git = "file://" + os.path.realpath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4))
    license("Apache-2.0")
    version("main", branch="main")

    variant("torch", default=False, description="Models of LibTorch")
    variant("dlib", default=False, description="Models of dlib")
    variant("cuda", default=False, description="Models on GPUs")
    variant("simgrid", default=False, description="fast-sim on simulated networks")
    variant("portable", default=False, description="Any x86-64 processor, instead of AVX2 and FMA")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpich@4.0:")
    depends_on("eigen@3.4:", type="build")
    depends_on("intel-tbb")
    depends_on("fmt@9:")
    depends_on("highway@1.0.3:")
    depends_on("cli11@2.1:2.3", type="build")
    depends_on("nlohmann-json@3.11:", type="build")
    depends_on("tomlplusplus@3.3:", type="build")
    depends_on("spectra@1:", type="build")
    depends_on("xxhash", type="build")
    depends_on("protozero", type="build")
    depends_on("prometheus-cpp@1.0:")
    depends_on("cpp-httplib@0.11:")
    depends_on("zlib-api")
    depends_on("jpeg")
    depends_on("libwebp")
    depends_on("libpng")
    depends_on("py-torch", when="+torch")
    depends_on("dlib", when="+dlib")
    depends_on("cuda@12:", when="+cuda")
    depends_on("cudnn@9:", when="+cuda")
    depends_on("simgrid@3.32:", when="+simgrid")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define("FAST_BUILD_TESTS", False),
            self.define_from_variant("FAST_TORCH", "torch"),
            self.define_from_variant("FAST_DLIB", "dlib"),
            self.define_from_variant("FAST_CUDA", "cuda"),
            self.define_from_variant("FAST_SIMGRID", "simgrid"),
            self.define_from_variant("FAST_PORTABLE", "portable"),
        ]
