// All that a program needs to train its own model with FAST. Backends, data and the Trainer have
// headers of their own.
#pragma once

#include <fast/algorithm/rules.hpp>
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <fast/core/tensor_view.hpp>
#include <fast/core/version.hpp>
#include <fast/exchange/local.hpp>
#include <fast/mpi/environment.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/load.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/closing.hpp>
#include <fast/worker/replicas.hpp>
#include <fast/worker/rotating_arena.hpp>
#include <fast/worker/worker.hpp>
