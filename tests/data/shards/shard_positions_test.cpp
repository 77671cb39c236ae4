#include "data/shards/shard_positions.hpp"

#include "support/catch.hpp"

using fast::data::ShardPositions;

TEST_CASE("each sample of a set has its position in a shard, empty shards have none") {
  ShardPositions positions;
  CHECK(positions.samples() == 0);
  const std::vector<std::size_t> shards{0, 3, 0, 0, 1, 2, 0};
  for (const std::size_t samples : shards) positions.add(samples);
  CHECK(positions.samples() == 6);
  std::size_t sample = 0;
  for (std::size_t shard = 0; shard < shards.size(); ++shard) {
    for (std::size_t i = 0; i < shards[shard]; ++i, ++sample) {
      CHECK(positions.of(sample).shard == shard);
      CHECK(positions.of(sample).sample == i);
    }
  }
}
