#include "data/shards/shard_places.hpp"

#include "support/catch.hpp"

using fast::data::ShardPlaces;

TEST_CASE("each sample of a set has its place in a shard, empty shards have none") {
  ShardPlaces places;
  CHECK(places.samples() == 0);
  const std::vector<std::size_t> shards{0, 3, 0, 0, 1, 2, 0};
  for (const std::size_t samples : shards) places.add(samples);
  CHECK(places.samples() == 6);
  std::size_t sample = 0;
  for (std::size_t shard = 0; shard < shards.size(); ++shard) {
    for (std::size_t i = 0; i < shards[shard]; ++i, ++sample) {
      CHECK(places.of(sample).shard == shard);
      CHECK(places.of(sample).sample == i);
    }
  }
}
