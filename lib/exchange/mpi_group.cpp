#include <fast/core/error.hpp>
#include <fast/exchange/group.hpp>
#include <optional>

namespace fast {
namespace {

constexpr Seconds start_up_deadline{300};

/// The ranks of one host, over MPI shared windows.
class SharedGroup : public GroupImpl {
 public:
  explicit SharedGroup(const mpi::Communicator& communicator)
      : communicator_(communicator), host_(communicator.same_host(Deadline(start_up_deadline))) {
    if (host_.size() != communicator_.size()) {
      throw Error(
          ErrorKind::argument,
          fmt::format(
              "Group: {} ranks are on more than one host; the shared window serves one host, "
              "start all ranks there",
              communicator_.size()),
          true);
    }
  }

  int rank() const override { return communicator_.rank(); }
  int size() const override { return communicator_.size(); }
  std::string name() const override { return "shared"; }

  std::vector<std::string> all_gather(std::string_view bytes, const Deadline& deadline,
                                      std::string_view purpose) override {
    return communicator_.all_gather(bytes, deadline, purpose);
  }

  Region allocate(std::size_t bytes_per_worker, const Deadline& deadline) override {
    auto window = std::make_shared<mpi::SharedWindow>(host_, bytes_per_worker, deadline);
    Region region;
    for (int rank = 0; rank < size(); ++rank) region.parts.push_back(window->part(rank));
    region.part_bytes = bytes_per_worker;
    region.owner = std::move(window);
    return region;
  }

 private:
  mpi::Communicator communicator_;
  mpi::Communicator host_;
};

}  // namespace

Group::Group(const mpi::Communicator& communicator)
    : impl_(std::make_shared<SharedGroup>(communicator)) {}

}  // namespace fast
