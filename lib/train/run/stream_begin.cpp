#include "train/run/stream_begin.hpp"

#include <fast/core/error.hpp>
#include <string>

namespace fast::train {
namespace {

constexpr auto beginning_of_stream = "Trainer: beginning of the stream";

void begin_here(const RunPlan& plan, const TrainingCursor& position, data::StreamOrder& order) {
  const std::string& name = plan.options.stream->name();
  const data::SampleStream::Extent extent = plan.options.stream->extent();
  const auto epoch = static_cast<std::size_t>(position.epoch());
  if (!order.has_begun()) return order.begin(extent.first, epoch, position.round());
  const std::string now = plan.options.stream->identity();
  require(order.stream().empty() || now.empty() || order.stream() == now, ErrorKind::data,
          "{}: it was deleted and made again since the checkpoint: its numbers are those of other "
          "samples; resume on the stream of the run, or begin a new run",
          name);
  const std::uint64_t next = order.round_begin(epoch, position.round());
  require(next <= extent.end, ErrorKind::data,
          "{}: the checkpoint goes on with message {}, the stream ends with message {}; it is "
          "another stream, or was made again: resume on the stream of the run",
          name, next, extent.end - 1);
  if (next >= extent.first) return;
  plan.log(LogLevel::warning,
           fmt::format("{}: messages {} to {} are no longer there: the run goes on without these "
                       "{}",
                       name, next, extent.first - 1, extent.first - next));
  order.begin(extent.first, epoch, position.round());
}

}  // namespace

void begin_stream(const RunPlan& plan, const TrainingCursor& position, data::StreamOrder& order) {
  agree(plan.group, plan.deadline(), beginning_of_stream, [&] {
    if (plan.group.rank() == 0) begin_here(plan, position, order);
  });
  const auto origins =
      plan.group.all_gather(std::to_string(order.origin()), plan.deadline(), beginning_of_stream);
  order.begin_at_origin(std::stoll(origins.front()));
  order.set_stream(plan.options.stream->identity());
}

}  // namespace fast::train
