// The options of the example.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/nn/model_spec.hpp>
#include <fast/nn/stage.hpp>
#include <fast/worker/worker.hpp>
#include <string>
#include <vector>

namespace pipeline {

struct Settings {
  std::string model = "lenet";
  std::vector<std::size_t> cuts{7};  ///< after so many layers
  std::size_t micro_batches = 4;
  std::size_t batch = 32;  ///< samples of a replica's step
  int steps = 200;
  double learning_rate = 0.02;
  std::string algorithm = "awc";
  std::string topology = "ring";
  std::int64_t staleness = 0;
  std::uint64_t seed = 1;
  double deadline_s = 60;
  double step_ms = 0;   ///< a pause in each step, for tests
  int compare = 0;      ///< pairs of blocks of steps
  bool whole = false;   ///< each rank has the whole model
  bool losses = false;  ///< prints the loss of every step
  std::string save;     ///< a file for the mean model
};

inline constexpr const char* usage =
    "usage: mpiexec -n RANKS pipeline [options]\n"
    "  --model NAME        lenet, mlp, mlp:512-256, resnet20 ..., or FILE.toml        lenet\n"
    "  --cut LAYERS        the model is cut after so many layers, for example 3,7     7\n"
    "  --micro-batches N   parts of a batch that follow each other through the stages 4\n"
    "  --batch N           samples of a replica's step                                32\n"
    "  --steps N                                                                      200\n"
    "  --lr RATE                                                                      0.02\n"
    "  --algorithm NAME    the rule of the workers of each stage                      awc\n"
    "  --topology NAME     of the replicas                                            ring\n"
    "  --staleness N                                                                  0\n"
    "  --seed N                                                                       1\n"
    "  --deadline S        for a wait for another stage                               60\n"
    "  --step-ms MS        a pause in each step                                       0\n"
    "  --save FILE         the mean model, whole, as safetensors\n"
    "  --losses            prints the loss of every step\n"
    "  --whole             each rank has the whole model: the same training without stages\n"
    "  --compare N         times N pairs of blocks of steps: in stages, and whole\n";

/// Throws Error(argument) on an unknown option and on a value that is no good.
Settings settings_from(int argc, char** argv);

/// The model for images of 28x28 pixels and 10 classes.
fast::nn::ModelSpec model_of(const Settings& settings);

/// The options of a Worker.
fast::WorkerOptions worker_options(const Settings& settings);

}  // namespace pipeline
