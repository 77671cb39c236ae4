#define _POSIX_C_SOURCE 200809L

#include "c/event_lines.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct event_lines {
  pthread_mutex_t mutex;
  char** lines;
  size_t count, capacity;
  int destroyed;
};

event_lines* event_lines_create(void) {
  event_lines* lines = calloc(1, sizeof *lines);
  if (lines != NULL) pthread_mutex_init(&lines->mutex, NULL);
  return lines;
}

void event_lines_free(event_lines* lines) {
  for (size_t i = 0; i < lines->count; ++i) free(lines->lines[i]);
  free(lines->lines);
  pthread_mutex_destroy(&lines->mutex);
  free(lines);
}

size_t event_lines_count(event_lines* lines) { return lines->count; }
const char* event_lines_at(event_lines* lines, size_t index) { return lines->lines[index]; }
int event_lines_destroyed(event_lines* lines) { return lines->destroyed; }

static void keep(event_lines* lines, const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  pthread_mutex_lock(&lines->mutex);
  if (lines->count == lines->capacity) {
    lines->capacity = 2 * lines->capacity + 64;
    lines->lines = realloc(lines->lines, lines->capacity * sizeof *lines->lines);
    if (lines->lines == NULL) abort();
  }
  lines->lines[lines->count++] = strdup(text);
  pthread_mutex_unlock(&lines->mutex);
}

static void on_phase(void* user, const fast_phase_event* e) {
  static const char* const phases[] = {"step", "publish", "wait", "mix", "commit"};
  keep(user, "phase %s worker %d peer %d round %" PRId64 " from %" PRId64 " to %" PRId64,
       phases[e->phase], e->worker, e->peer, e->round, e->began_ns, e->ended_ns);
}

static void on_message(void* user, const fast_message_event* e) {
  keep(user,
       "%s worker %d from %d fresh %d sequence %" PRIu64 " round %" PRId64 " age %" PRId64
       " at %" PRId64,
       e->kind == FAST_MESSAGE_READ ? "read" : "published", e->worker, e->from, e->fresh,
       e->sequence, e->round, e->age, e->at_ns);
}

static void on_peer(void* user, const fast_peer_event* e) {
  static const char* const kinds[] = {"suspected", "returned", "rejoined", "healed"};
  keep(user, "%s worker %d peer %d round %" PRId64 " at %" PRId64, kinds[e->kind], e->worker,
       e->peer, e->round, e->at_ns);
}

static void on_scalar(void* user, const fast_scalar_event* e) {
  keep(user, "scalar %s value %.9g worker %d round %" PRId64 " at %" PRId64, e->name, e->value,
       e->worker, e->round, e->at_ns);
}

static void on_milestone(void* user, const fast_milestone_event* e) {
  keep(user, "%s text \"%s\" worker %d epoch %d round %" PRId64 " from %" PRId64 " to %" PRId64,
       e->kind == FAST_MILESTONE_SAVED ? "saved" : "epoch ended", e->text, e->worker, e->epoch,
       e->round, e->began_ns, e->ended_ns);
}

static void on_values(void* user, const fast_values_event* e) {
  keep(user, "values %s count %zu first %.9g worker %d epoch %d round %" PRId64, e->name, e->count,
       (double)e->values[0], e->worker, e->epoch, e->round);
}

static void destroy(void* user) { ++((event_lines*)user)->destroyed; }

fast_status event_lines_observe(event_lines* lines, fast_observer** observer) {
  const fast_observer_functions functions = {sizeof functions, on_phase,     on_message, on_peer,
                                             on_scalar,        on_milestone, on_values,  destroy};
  return fast_observer_create(&functions, lines, observer);
}

static int train(fast_worker* worker, const observed_run* run, int rank, float* weights) {
  for (int round = 0; round < run->rounds; ++round) {
    if (fast_worker_begin_round(worker) != FAST_OK) return 1;
    weights[0] += (float)rank;
    if (round == 3) weights[1] = NAN;
    if (fast_worker_end_round(worker, 0.5, 0.1) != FAST_OK) return 2;
    if (fast_worker_scalar(worker, "test/round", round) != FAST_OK) return 3;
  }
  return fast_worker_await_finish(worker) == FAST_OK ? 0 : 4;
}

int observed_worker(fast_group* group, void* user) {
  const observed_run* run = user;
  const int64_t shape[] = {2};
  float weights[] = {0, 1};
  const fast_tensor tensor = {"w", weights, shape, NULL, 1, FAST_F32, FAST_PARAMETER};
  fast_options* options = NULL;
  fast_worker* worker = NULL;
  int result = 10;
  if (fast_options_create(&options) == FAST_OK &&
      fast_options_set(options, "deadline", "60") == FAST_OK &&
      fast_options_set(options, "nan", "heal") == FAST_OK &&
      fast_options_observe(options, run->observer) == FAST_OK) {
    run->attach(options, run->context);
    if (fast_worker_create(group, "ring", &tensor, 1, options, &worker) == FAST_OK) {
      result = train(worker, run, fast_group_rank(group), weights);
    }
  }
  fast_worker_free(worker);
  fast_options_free(options);
  return result;
}
