#include <sys/mman.h>

#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/exchange/group.hpp>
#include <set>

#include "exchange/collective/mpi_reducer.hpp"
#include "exchange/device/window_reads.hpp"
#include "exchange/group_impl.hpp"
#include "exchange/mpi_datagrams.hpp"
#include "exchange/remote/remote_mirror.hpp"
#include "mpi/impl.hpp"
#include "mpi/launcher.hpp"
#include "mpi/retired_windows.hpp"

namespace fast {
namespace {

constexpr Seconds start_up_deadline{300};

/// The neighbors in so many rounds have memory for their mirrors from the start on, where a lack of
/// memory ends all workers. Others get it when they are first read.
constexpr std::int64_t rounds_at_start = 64;

/// Address space for the mirrors of remote workers, zeroed where provide() has been called: a
/// system may count memory that nobody uses yet (vm.overcommit_memory=2).
class MirrorMemory {
 public:
  explicit MirrorMemory(std::size_t size_bytes) : size_(size_bytes) {
    data_ = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    require(
        data_ != MAP_FAILED, ErrorKind::resource,
        "Group: the system refused {} bytes of address space for the mirrors of remote workers; "
        "raise the limit (ulimit -v) or train a smaller model",
        size_);
  }
  MirrorMemory(const MirrorMemory&) = delete;
  MirrorMemory& operator=(const MirrorMemory&) = delete;
  ~MirrorMemory() { munmap(data_, size_); }
  std::byte* data() const { return static_cast<std::byte*>(data_); }
  void provide(std::size_t offset, std::size_t bytes) const {
    require(mprotect(data() + offset, bytes, PROT_READ | PROT_WRITE) == 0, ErrorKind::resource,
            "Group: the system refused {} bytes of memory for the mirror of a remote worker; raise "
            "the limit (ulimit -d; vm.overcommit_ratio)",
            bytes);
  }

 private:
  std::size_t size_;
  void* data_;
};

/// Ranks of one host or of several: shared windows within a host, mirrors of workers elsewhere.
class MpiGroup : public GroupImpl {
 public:
  explicit MpiGroup(const mpi::Communicator& communicator)
      : communicator_(communicator),
        host_(communicator.same_host(Deadline(start_up_deadline))),
        index_on_host_(static_cast<std::size_t>(communicator.size()), -1) {
    const auto ranks = host_.all_gather(std::to_string(communicator_.rank()),
                                        Deadline(start_up_deadline), "Group: finding hosts");
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      index_on_host_[std::stoul(ranks[i])] = static_cast<int>(i);
    }
    const auto lowest = communicator_.all_gather(ranks.front(), Deadline(start_up_deadline),
                                                 "Group: finding hosts");
    for (const std::string& rank : lowest) hosts_.push_back(std::stoi(rank));
    several_hosts_ = lowest != std::vector<std::string>(lowest.size(), lowest.front());
  }

  int rank() const override { return communicator_.rank(); }
  int size() const override { return communicator_.size(); }
  std::string name() const override { return several_hosts_ ? "hybrid" : "shared"; }
  std::vector<int> hosts() const override { return hosts_; }

  void skip_prefault() override { host_.impl()->skips_prefault = true; }
  std::shared_ptr<GroupImpl> subgroup(int color, const Deadline& deadline) override {
    return std::make_shared<MpiGroup>(communicator_.split(color, deadline));
  }

  std::vector<std::string> all_gather(std::string_view bytes, const Deadline& deadline,
                                      std::string_view purpose) override {
    return communicator_.all_gather(bytes, deadline, purpose);
  }

  Region allocate(std::size_t bytes_per_worker, const Deadline& deadline) override {
    return allocate(bytes_per_worker, bytes_per_worker, deadline);
  }

  Region allocate_board(const exchange::SlotLayout& layout, const Deadline& deadline) override {
    return allocate(layout.part_bytes(), exchange::SlotLayout::header_bytes, deadline);
  }

  std::shared_ptr<exchange::RemoteAccess> connect(
      const std::shared_ptr<const exchange::SlotBoard>& board, const EdgePlan& plan,
      const ExchangeOptions& options) override {
    if (!several_hosts_) return nullptr;
    std::vector<bool> is_remote;
    for (const int index : index_on_host_) is_remote.push_back(index < 0);
    const Deadline deadline(options.deadline);
    require_on_all_hosts(deadline, [&] {
      for (const int source : remote_sources(plan)) board->provide_mirror(source);
    });
    exchange::RemoteTransports ways;
    ways.window = std::make_unique<mpi::RemoteWindow>(
        communicator_, reinterpret_cast<std::byte*>(&board->header(rank())),
        board->layout().part_bytes(), std::const_pointer_cast<exchange::SlotBoard>(board),
        deadline);
    ways.messages = std::make_unique<mpi::Messages>(communicator_, deadline);
    exchange::RemoteEdges edges{board,
                                rank(),
                                plan,
                                options.staleness,
                                exchange::Throttle(options.remote_bytes_per_s),
                                exchange::SendBuffers(board, rank())};
    ways.paths = exchange::choose_paths(communicator_, edges, *ways.window, *ways.messages,
                                        is_remote, options);
    return std::make_shared<exchange::RemoteMirror>(
        std::move(edges), std::move(ways),
        exchange::RemoteLog(rank(), options.log, options.number_of));
  }

  std::shared_ptr<RemoteReads> expose(std::byte* part, std::size_t size_bytes,
                                      std::shared_ptr<void> keep,
                                      const Deadline& deadline) override {
    if (!several_hosts_) return nullptr;
    return std::make_shared<exchange::WindowReads>(std::make_unique<mpi::RemoteWindow>(
        communicator_, part, size_bytes, std::move(keep), deadline));
  }
  std::unique_ptr<membership::Datagrams> open_datagrams(std::size_t size_bytes,
                                                        const Deadline& deadline) override {
    if (!several_hosts_) return nullptr;
    return std::make_unique<exchange::MpiDatagrams>(communicator_, size_bytes, deadline);
  }
  bool some_are_gone() const override { return mpi::some_rank_has_ended(); }
  bool knows_ends() const override { return mpi::launcher_reports_ends(); }
  std::vector<int> ended() const override {
    return mpi::ended_among(communicator_.impl()->world_ranks);
  }
  std::vector<int> failed() const override {
    return mpi::failed_among(communicator_.impl()->world_ranks);
  }
  std::vector<int> died() const override {
    return mpi::died_among(communicator_.impl()->world_ranks);
  }
  void disable_collectives() override {
    communicator_.disable_collectives();
    host_.disable_collectives();
  }

  std::unique_ptr<Reducer> mpi_reducer(const exchange::ReducerLink& link,
                                       Seconds deadline) override {
    if (!several_hosts_) return nullptr;
    return std::make_unique<exchange::MpiReducer>(communicator_, link, deadline);
  }

 private:
  /// Of the mirrors of remote workers, only the first `mirror_bytes` of each have memory.
  Region allocate(std::size_t bytes_per_worker, std::size_t mirror_bytes,
                  const Deadline& deadline) {
    struct Owner {
      std::unique_ptr<mpi::SharedWindow> window;
      std::unique_ptr<MirrorMemory> mirrors;
    };
    mpi::free_retired(communicator_, deadline);
    const std::size_t part_bytes = round_up(bytes_per_worker, page_bytes);
    const auto elsewhere = static_cast<std::size_t>(size() - host_.size());
    auto owner = std::make_shared<Owner>();
    require_on_all_hosts(deadline, [&] {
      owner->window = std::make_unique<mpi::SharedWindow>(host_, part_bytes, deadline);
    });
    require_on_all_hosts(deadline, [&] {
      if (elsewhere > 0) owner->mirrors = std::make_unique<MirrorMemory>(elsewhere * part_bytes);
      for (std::size_t mirror = 0; mirror < elsewhere; ++mirror)
        owner->mirrors->provide(mirror * part_bytes, mirror_bytes);
    });
    Region region;
    std::size_t mirror = 0;
    for (const int index : index_on_host_) {
      region.parts.push_back(index >= 0 ? owner->window->part(index)
                                        : owner->mirrors->data() + part_bytes * mirror++);
    }
    region.part_bytes = part_bytes;
    region.owner = std::move(owner);
    return region;
  }

  /// Of the first rounds. A round whose edges are an error is one when it comes.
  std::set<int> remote_sources(const EdgePlan& plan) const {
    std::set<int> sources;
    try {
      for (std::int64_t round = 0; round < rounds_at_start; ++round) {
        for (const int source : plan(round).sources)
          if (index_on_host_[static_cast<std::size_t>(source)] < 0) sources.insert(source);
      }
    } catch (const Error&) {
      return sources;
    }
    return sources;
  }

  /// Collective. `allocate` may fail on some ranks. Then it fails on all ranks, and rank 0 says
  /// why.
  template <class Allocate>
  void require_on_all_hosts(const Deadline& deadline, const Allocate& allocate) const {
    if (!several_hosts_) return allocate();
    std::string why;
    try {
      allocate();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::deadline) throw;  // the others are gone
      why = error.what();
    }
    const auto all = communicator_.all_gather(why, deadline, "Group: allocating");
    const ErrorKind kind = rank() == 0 ? ErrorKind::resource : ErrorKind::peer_failed;
    for (std::size_t worker = 0; worker < all.size(); ++worker)
      require(all[worker].empty(), kind, "{} (found by worker {})", all[worker], worker);
  }

  mpi::Communicator communicator_;
  mpi::Communicator host_;
  std::vector<int> index_on_host_;  ///< by rank; -1: on another host
  std::vector<int> hosts_;          ///< by rank: the lowest rank of its host
  bool several_hosts_ = false;
};

}  // namespace

Group::Group(const mpi::Communicator& communicator)
    : impl_(std::make_shared<MpiGroup>(communicator)) {}

}  // namespace fast
