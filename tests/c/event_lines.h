/* Keeps what an observer of the C interface is told, a line of text for each event. */
#ifndef FAST_TESTS_C_EVENT_LINES_H
#define FAST_TESTS_C_EVENT_LINES_H

#include <fast/fast.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct event_lines event_lines;

event_lines* event_lines_create(void); /* NULL without memory */
void event_lines_free(event_lines* lines);
size_t event_lines_count(event_lines* lines);
const char* event_lines_at(event_lines* lines, size_t index);
int event_lines_destroyed(event_lines* lines); /* how often the observer was destroyed */

/* An observer with all functions, which writes to `lines`. */
fast_status event_lines_observe(event_lines* lines, fast_observer** observer);

/* A worker of a ring that trains for `rounds` and tells "test/round" in each. Its weights are not
 * finite in round 3. `attach` adds what else observes to the options. */
typedef struct observed_run {
  fast_observer* observer;
  void (*attach)(fast_options* options, void* context);
  void* context;
  int rounds;
} observed_run;
int observed_worker(fast_group* group, void* run);

#ifdef __cplusplus
}
#endif

#endif
