/* MPICH's progress loop, made fair: after some idle polls it gives the core away, so that with more
 * ranks than cores a benchmark measures communication and not the scheduler's slices. Linked into a
 * program, this stands in front of UCX's function of the same name; fast_bench_yield says whether
 * it yields (1) or leaves MPICH as it is (0). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

int fast_bench_yield = 0;

unsigned ucp_worker_progress(void* worker) {
  static unsigned (*progress)(void*);
  static __thread int idle;
  if (!progress) progress = (unsigned (*)(void*))dlsym(RTLD_NEXT, "ucp_worker_progress");
  const unsigned done = progress(worker);
  if (done)
    idle = 0;
  else if (fast_bench_yield && ++idle > 50)
    sched_yield();
  return done;
}
