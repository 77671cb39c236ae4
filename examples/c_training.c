/* A model in plain C, trained by four workers through FAST's C interface: a polynomial of degree 3
 * that fits a sine, each worker seeing a quarter of the interval only.
 *   c_training                  workers are threads of this process
 *   mpiexec -n 4 c_training     workers are MPI ranks */
#include <fast/fast.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { terms = 4, rounds = 4000 };

typedef struct Model {
  double coefficients[terms]; /* of Legendre polynomials */
} Model;

static void features(double x, double* p) {
  p[0] = 1;
  p[1] = x;
  p[2] = (3 * x * x - 1) / 2;
  p[3] = (5 * x * x * x - 3 * x) / 2;
}

static double error_at(const Model* model, double x) {
  double p[terms], y = 0;
  features(x, p);
  for (int k = 0; k < terms; ++k) y += model->coefficients[k] * p[k];
  return y - sin(2 * x);
}

/* A step of stochastic gradient descent on a point of this worker's part of [-1, 1]. */
static double train(Model* model, int rank, int size, int round) {
  const double rate = round < rounds / 2 ? 0.2 : 0.02;
  const double share = (double)(round * 7 % 16) / 16;
  const double x = -1 + 2 * (rank + share) / size, error = error_at(model, x);
  double p[terms];
  features(x, p);
  for (int k = 0; k < terms; ++k) model->coefficients[k] -= rate * error * p[k];
  return error * error;
}

/* Prints the error once and ends the worker. */
#define CHECK(call)                                                                             \
  do {                                                                                          \
    const fast_status status_ = (call);                                                         \
    if (status_ != FAST_OK) {                                                                   \
      if (status_ != FAST_ERROR_PEER_FAILED) fprintf(stderr, "error: %s\n", fast_last_error()); \
      fast_worker_free(worker);                                                                 \
      return 1;                                                                                 \
    }                                                                                           \
  } while (0)

static int run_worker(fast_group* group, void* user) {
  Model model = {{0}};
  const int64_t shape[] = {terms};
  const fast_tensor tensor = {"coefficients", model.coefficients, shape, NULL, 1,
                              FAST_F64,       FAST_PARAMETER};
  fast_worker* worker = NULL;
  double distance = 0, worst = 0;
  (void)user;
  CHECK(fast_worker_create(group, "torus2d", &tensor, 1, NULL, &worker));
  for (int round = 0; round < rounds; ++round) {
    CHECK(fast_worker_begin_round(worker));
    const double loss = train(&model, fast_group_rank(group), fast_group_size(group), round);
    CHECK(fast_worker_end_round(worker, loss, 0));
  }
  CHECK(fast_worker_await_finish(worker));
  CHECK(fast_worker_consensus_distance(worker, &distance));
  for (int i = 0; i <= 100; ++i) worst = fmax(worst, fabs(error_at(&model, -1 + 0.02 * i)));
  if (fast_group_rank(group) == 0)
    printf(
        "%d workers found %.2f x %+.2f (5 x^3 - 3 x)/2, at most %.3f from the sine; they differ "
        "by %.3f\n",
        fast_group_size(group), model.coefficients[1], model.coefficients[3], worst, distance);
  fast_worker_free(worker);
  return 0;
}

static int fail(void) {
  fprintf(stderr, "error: %s\n", fast_last_error());
  return 1;
}

int main(void) {
  fast_environment* environment = NULL;
  fast_group* world = NULL;
  int result;
  if (fast_environment_create(&environment) != FAST_OK) return fail();
  if (fast_group_world(environment, &world) != FAST_OK) return fail();
  if (fast_group_size(world) > 1)
    result = run_worker(world, NULL);
  else
    result = fast_run_local(4, run_worker, NULL) == FAST_OK ? 0 : 1;
  fast_group_free(world);
  fast_environment_free(environment);
  return result;
}
