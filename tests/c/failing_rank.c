/* A model in C whose function fails on rank 1: every rank ends soon, and the reason is printed
 * once. failing_rank train|evaluate    evaluate: in the test at the end, after which the others
 * wait for all results */
#define _POSIX_C_SOURCE 200809L
#include <fast/fast.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct Model {
  float weight;
  int steps, fails_in_train, fails_in_evaluate;
  char table[64];
} Model;

static int train(void* user, const fast_batch* batch,
                 int (*hook)(void* hook_context, const fast_tensor* gradients, size_t count),
                 void* hook_context, double* loss) {
  Model* model = user;
  (void)hook;
  (void)hook_context;
  (void)batch;
  if (model->steps++ == 0) remove(model->table);
  *loss = 1;
  return model->fails_in_train && model->steps == 3 ? 5 : 0;
}

static int evaluate_task(void* user, const fast_batch* batch, double* loss_sum,
                         fast_measures* measures) {
  Model* model = user;
  *loss_sum = (double)batch->count;
  (void)measures;
  return model->fails_in_evaluate ? 6 : 0;
}

static int set_learning_rate(void* user, double rate) {
  (void)user;
  (void)rate;
  return 0;
}

static int write_table(const char* path) {
  FILE* file = fopen(path, "w");
  if (file == NULL) return 0;
  fprintf(file, "x,t\n");
  for (int i = 0; i < 100; ++i) fprintf(file, "0,%d.5\n", i);
  return fclose(file) == 0;
}

static fast_status run(const fast_group* group, Model* model) {
  static const int64_t shape[] = {1};
  const fast_tensor tensor = {"weight", &model->weight, shape, NULL, 1, FAST_F32, FAST_PARAMETER};
  fast_backend_functions functions;
  fast_options* options = NULL;
  fast_backend* backend = NULL;
  fast_status status;
  memset(&functions, 0, sizeof functions);
  functions.struct_size = sizeof functions;
  functions.name = "failing";
  functions.train = train;
  functions.set_learning_rate = set_learning_rate;
  functions.evaluate_task = evaluate_task;
  status = fast_options_create(&options);
  if (status == FAST_OK) status = fast_options_set(options, "target", "t");
  if (status == FAST_OK) status = fast_options_set(options, "epochs", "2");
  if (status == FAST_OK) status = fast_options_set(options, "batch_size", "4");
  if (status == FAST_OK) status = fast_backend_create(&functions, model, &tensor, 1, &backend);
  if (status == FAST_OK) status = fast_train(group, "ring", backend, model->table, options, NULL);
  if (status != FAST_OK && status != FAST_ERROR_PEER_FAILED)
    fprintf(stderr, "error: %s\n", fast_last_error());
  fast_backend_free(backend);
  fast_options_free(options);
  return status;
}

int main(int argc, char** argv) {
  fast_environment* environment = NULL;
  fast_group* group = NULL;
  fast_status status;
  Model model;
  memset(&model, 0, sizeof model);
  if (argc != 2 || fast_environment_create(&environment) != FAST_OK) return 2;
  if (fast_group_world(environment, &group) != FAST_OK) return 2;
  if (fast_group_rank(group) == 1) {
    model.fails_in_train = strcmp(argv[1], "train") == 0;
    model.fails_in_evaluate = strcmp(argv[1], "evaluate") == 0;
  }
  snprintf(model.table, sizeof model.table, "/tmp/failing_rank_%d.csv", (int)getpid());
  if (!write_table(model.table)) return 2;
  status = run(group, &model);
  remove(model.table);
  fast_group_free(group);
  fast_environment_free(environment);
  return status == FAST_OK ? 0 : 1;
}
