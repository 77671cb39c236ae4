#include "mpi/process_manager.hpp"

#include <cstdlib>
#include <fast/core/error.hpp>
#include <map>
#include <string>

#include "mpi/implementation.hpp"
#include "support/catch.hpp"

using namespace fast;

namespace {

using Environ = std::map<std::string, std::string>;

/// The variables of process managers are these, until the end of a test.
class Variables {
 public:
  explicit Variables(const Environ& set) {
    for (const char* name : {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "PMIX_RANK",
                             "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "OMPI_COMM_WORLD_RANK",
                             "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
                             "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}) {
      if (const char* value = std::getenv(name)) before_[name] = value;
      unsetenv(name);
      names_[name] = "";
    }
    for (const auto& [name, value] : set) setenv(name.c_str(), value.c_str(), 1);
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
  ~Variables() {
    for (const auto& [name, value] : names_) unsetenv(name.c_str());
    for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  Environ before_, names_;
};

const Environ of_mpich{
    {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}, {"MPI_LOCALRANKID", "1"}};
const Environ of_open_mpi{{"OMPI_COMM_WORLD_RANK", "3"},
                          {"OMPI_COMM_WORLD_SIZE", "4"},
                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}};
const Environ of_srun_with_pmix{
    {"PMIX_RANK", "5"}, {"SLURM_STEP_NUM_TASKS", "6"}, {"SLURM_NTASKS", "9"}};

bool is_open_mpi() { return mpi::implementation::name() == "Open MPI"; }

}  // namespace

TEST_CASE("a rank is known by the variables of what started it") {
  {
    const Variables none({});
    CHECK_FALSE(mpi::started());
  }
  {
    const Variables some(of_mpich);
    const auto self = mpi::started();
    REQUIRE(self);
    CHECK((self->rank == 1 && self->size == 2 && self->here == 2 && self->number_here == 1));
  }
  {
    const Variables some(of_open_mpi);
    const auto self = mpi::started();
    REQUIRE(self);
    CHECK((self->rank == 3 && self->size == 4 && self->here == 1));
  }
  {
    const Variables some(of_srun_with_pmix);
    const auto self = mpi::started();
    REQUIRE(self);
    CHECK((self->rank == 5 && self->size == 6 && self->here == 0 && self->number_here == 0));
  }
}

TEST_CASE("of process managers within each other, that of the library's MPI counts") {
  Environ both = of_mpich;
  both.insert(of_open_mpi.begin(), of_open_mpi.end());
  both.insert(of_srun_with_pmix.begin(), of_srun_with_pmix.end());
  {
    const Variables all(both);
    const auto self = mpi::started();
    REQUIRE(self);
    CHECK(self->rank == (is_open_mpi() ? 3 : 1));
  }
  // As a process of Open MPI that is alone sets it.
  Environ with_own_pmix = of_mpich;
  with_own_pmix["PMIX_RANK"] = "0";
  const Variables some(with_own_pmix);
  const auto self = mpi::started();
  REQUIRE(self);
  CHECK((self->rank == 1 && self->size == 2));
}

TEST_CASE("only ranks that are alone, though several were started, are refused") {
  const auto check = [](int size) { mpi::require_own_process_manager(size, "some MPI"); };
  {
    const Variables none({});
    CHECK_NOTHROW(check(1));
  }
  Environ first = is_open_mpi() ? of_mpich : of_srun_with_pmix;
  first[is_open_mpi() ? "PMI_RANK" : "PMIX_RANK"] = "0";
  {
    const Variables several(first);
    CHECK_NOTHROW(check(2));
    CHECK_THROWS_WITH(check(1), Catch::Matchers::Contains("each of them is alone") &&
                                    Catch::Matchers::Contains("MPI is some MPI; start"));
    if (!is_open_mpi())
      CHECK_THROWS_WITH(check(1), Catch::Matchers::Contains("srun --mpi=pmix started 6 ranks"));
  }
  first[is_open_mpi() ? "PMI_SIZE" : "SLURM_STEP_NUM_TASKS"] = "1";
  const Variables one(first);
  CHECK_NOTHROW(check(1));
}
