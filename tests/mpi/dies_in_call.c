// Loaded before a program (LD_PRELOAD): a rank is killed where it enters one of its collective
// calls of MPI.   DIES_RANK: which rank.   DIES_IN: "meeting" (MPI_Ibarrier, MPI_Iallgather) or
// "window" (MPI_Win_allocate_shared); "left": where a meeting has ended.   DIES_AT: which of these
// calls, from 1 on; 0: none.   DIES_COUNT: a file that holds the number of these calls so far.
#include <mpi.h>

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char* setting(const char* name) {
  const char* value = getenv(name);
  return value == NULL ? "" : value;
}

static atomic_int calls;

static int is_victim(void) { return strcmp(setting("DIES_RANK"), setting("FASTRUN_RANK")) == 0; }
static int is_place(const char* kind) { return strcmp(setting("DIES_IN"), kind) == 0; }
static int is_last(void) {
  const int last = atoi(setting("DIES_AT"));
  return last > 0 && atomic_load(&calls) == last;
}

static void enter(const char* kind) {
  const int counts = is_place(kind) || (is_place("left") && strcmp(kind, "meeting") == 0);
  if (!is_victim() || !counts) return;
  const int number = atomic_fetch_add(&calls, 1) + 1;
  const int file = open(setting("DIES_COUNT"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file >= 0) {
    dprintf(file, "%d", number);
    close(file);
  }
  if (is_last() && !is_place("left")) kill(getpid(), SIGKILL);
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  enter("meeting");
  return PMPI_Ibarrier(comm, request);
}

int MPI_Iallgather(const void* from, int count, MPI_Datatype type, void* to, int to_count,
                   MPI_Datatype to_type, MPI_Comm comm, MPI_Request* request) {
  enter("meeting");
  return PMPI_Iallgather(from, count, type, to, to_count, to_type, comm, request);
}

int MPI_Win_allocate_shared(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base,
                            MPI_Win* window) {
  enter("window");
  return PMPI_Win_allocate_shared(size, unit, info, comm, base, window);
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  const int code = PMPI_Test(request, flag, status);
  if (*flag && is_victim() && is_place("left") && is_last()) kill(getpid(), SIGKILL);
  return code;
}
