/* FAST for C11 and whatever calls C: decentralized training by neighbors. Link fast::c (libfast_c).
 *
 * Every function that can fail returns a fast_status; what went wrong is then in fast_last_error(),
 * one line a thread. Handles are opaque; free each once (NULL is fine). A handle is used by one
 * thread at a time. Names, units and meanings are those of the C++ headers. */
#ifndef FAST_FAST_H
#define FAST_FAST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fast_status {
  FAST_OK = 0,
  FAST_ERROR_ARGUMENT,    /* a value out of range, an unknown name, a bad tensor */
  FAST_ERROR_DATA,        /* a file is missing, truncated or malformed */
  FAST_ERROR_TOPOLOGY,    /* a topology or its weights do not hold what is required */
  FAST_ERROR_MISMATCH,    /* workers disagree about model or options */
  FAST_ERROR_DEADLINE,    /* a wait took too long */
  FAST_ERROR_MPI,         /* an MPI call failed */
  FAST_ERROR_RESOURCE,    /* memory or /dev/shm does not suffice */
  FAST_ERROR_NUMERIC,     /* a loss is not finite */
  FAST_ERROR_PEER_FAILED, /* another worker failed, and has said why */
  FAST_ERROR_INTERNAL,    /* a fault of the library */
  FAST_ERROR_CALLBACK     /* a function of the caller's returned a number other than 0 */
} fast_status;

typedef enum fast_dtype {
  FAST_F32 = 0,
  FAST_F64,
  FAST_BF16,
  FAST_F16,
  FAST_I8,
  FAST_U8,
  FAST_I32,
  FAST_I64
} fast_dtype;

typedef enum fast_role { FAST_PARAMETER = 0, FAST_BUFFER } fast_role;

/* A tensor of the caller's in host memory, which stays there for as long as a handle uses it. The
 * struct itself, its name and its arrays are copied. Refused: no elements, no name, gaps, partial
 * overlap with another; the same memory twice (tied weights) counts once. */
typedef struct fast_tensor {
  const char* name;
  void* data;
  const int64_t* shape;   /* `sides` numbers, row-major */
  const int64_t* strides; /* in elements, `sides` numbers; NULL: contiguous */
  int32_t sides;
  fast_dtype dtype;
  fast_role role;
} fast_tensor;

typedef struct fast_environment fast_environment; /* MPI for the life of a program */
typedef struct fast_group fast_group;             /* the workers of a run */
typedef struct fast_options fast_options;
typedef struct fast_worker fast_worker;
typedef struct fast_backend fast_backend;
typedef struct fast_observer fast_observer;

const char* fast_version(void);    /* "0.1.0" */
const char* fast_last_error(void); /* of this thread's last call that failed; never NULL */
const char* fast_status_name(fast_status status); /* "deadline" */

/* Initializes MPI unless the program has. Without mpiexec there is one rank. Freeing waits for all
 * ranks. If the latest call of a worker or of fast_train() failed here, it waits for a few seconds
 * at most, and then ends the ranks that still run. */
fast_status fast_environment_create(fast_environment** environment);
void fast_environment_free(fast_environment* environment);
/* Collective. All ranks of the run. */
fast_status fast_group_world(fast_environment* environment, fast_group** group);
/* Runs function(group, user) on so many threads, each a worker, without MPI. When one returns
 * another number than 0, or fails in a call, the others end with FAST_ERROR_PEER_FAILED. */
typedef int (*fast_worker_function)(fast_group* group, void* user);
fast_status fast_run_local(int workers, fast_worker_function function, void* user);
void fast_group_free(fast_group* group);      /* not for that of fast_run_local */
int fast_group_rank(const fast_group* group); /* -1 for NULL, as all below that return a number */
int fast_group_size(const fast_group* group);

/* Spares: ranks that take the place of workers that are lost, or join as workers more. Collective
 * over `everyone`, whose last `spares` ranks become spares; `everyone` may be freed afterwards. The
 * rank in the group is then the seat: the worker's number in the topology, whoever holds it. In
 * fast_worker_create() a spare sleeps until it takes a seat. If it is not needed, the call returns
 * when training has ended; fast_group_has_seat() is then 0, and fast_worker_round() the largest
 * number, so that loops over rounds end. */
fast_status fast_group_with_spares(const fast_group* everyone, int spares, fast_group** group);
int fast_launcher_spares(void); /* that `fastrun --spares` has started; 0 without it */
/* 0: a spare without a seat, or a worker that a spare has replaced. */
int fast_group_has_seat(const fast_group* group);
/* The workers that spares have replaced, and those that have joined since training began: writes
 * the first `room` of them, and their number to *count. No call is collective any more if there is
 * one: call fast_group_give_up() after training. */
fast_status fast_group_replaced(const fast_group* group, int* workers, size_t room, size_t* count);
fast_status fast_group_joined(const fast_group* group, int* workers, size_t room, size_t* count);
/* No collective call is made any more, nor at the end. */
fast_status fast_group_give_up(const fast_group* group);

/* Settings by name, all with defaults. docs/reference/fast-train.md describes the options of
 * fast-train; a setting has the same name, with _ for -. 0 and 1 stand for false and true. A name
 * or value that is not known is refused when the options are used; the error lists the names. A
 * worker takes the settings of the rule, the messages, the mixing weights, failures and sites. Here
 * alone: algorithm.KEY and site_algorithm.KEY (options of the rules), initial (broadcast or as_is),
 * must_agree (text that is equal on all workers), mixing_threads (1 to 256), log (1: to standard
 * error). fast_train takes data, learning rate (0.05), progress (0), output and checkpoints
 * besides. */
fast_status fast_options_create(fast_options** options);
fast_status fast_options_set(fast_options* options, const char* name, const char* value);
void fast_options_free(fast_options* options);

/* What happens in a worker. Times ending in _ns are nanoseconds of a clock that never jumps (Linux:
 * CLOCK_MONOTONIC). Rounds count from 0. Texts and arrays are valid during the call. */
typedef enum fast_phase {
  FAST_PHASE_STEP = 0, /* the caller's own step, from begin_round to end_round */
  FAST_PHASE_PUBLISH,  /* writing a publication that no mixing pass could write */
  FAST_PHASE_WAIT,     /* for neighbors */
  FAST_PHASE_MIX,      /* reading the neighbors' publications and averaging */
  FAST_PHASE_COMMIT    /* telling the neighbors: read, and published */
} fast_phase;
typedef struct fast_phase_event {
  fast_phase phase;
  int worker;
  int peer; /* of a wait for one peer, within another phase; -1: all neighbors of the round */
  int64_t round, began_ns, ended_ns;
} fast_phase_event;

typedef enum fast_message_kind { FAST_MESSAGE_PUBLISHED = 0, FAST_MESSAGE_READ } fast_message_kind;
typedef struct fast_message_event {
  fast_message_kind kind;
  int worker;        /* that published or read */
  int from;          /* whose publication it is */
  int fresh;         /* 1: not read before */
  uint64_t sequence; /* number of the publication, from 1 on, by its worker */
  int64_t round;     /* of `worker` */
  int64_t age;       /* of what was read: rounds behind; at least 0 */
  int64_t at_ns;
} fast_message_event;

typedef enum fast_peer_kind {
  FAST_PEER_SUSPECTED = 0, /* without a sign of life for suspect_after */
  FAST_PEER_RETURNED,      /* it showed one after all */
  FAST_PEER_REJOINED,      /* the worker was left behind and has adopted its neighbors' average */
  FAST_PEER_HEALED         /* its weights were not finite and have been replaced */
} fast_peer_kind;
typedef struct fast_peer_event {
  fast_peer_kind kind;
  int worker, peer; /* equal for FAST_PEER_REJOINED and FAST_PEER_HEALED */
  int64_t round, at_ns;
} fast_peer_event;

typedef struct fast_scalar_event {
  const char* name; /* "train/loss" */
  double value;
  int worker;
  int64_t round, at_ns;
} fast_scalar_event;

typedef enum fast_milestone_kind {
  FAST_MILESTONE_EPOCH_ENDED = 0,
  FAST_MILESTONE_SAVED /* the state was copied for a checkpoint, which a thread then writes */
} fast_milestone_kind;
typedef struct fast_milestone_event {
  fast_milestone_kind kind;
  int worker, epoch; /* epoch: from 0 on */
  const char* text;  /* the checkpoint's round, or "" */
  int64_t round, began_ns, ended_ns;
} fast_milestone_event;

/* The values of a tensor, for histograms. Only fast_train sends it, at most once an epoch. */
typedef struct fast_values_event {
  const char* name;
  const float* values;
  size_t count;
  int worker, epoch;
  int64_t round;
} fast_values_event;

/* Functions of the caller's, each of which may be NULL.
 * Who calls: the thread that calls the worker, and threads of the library. Calls for one observer
 * may overlap, also with calls for other workers.
 * A function must return soon: training waits for it. It must not throw or jump out, must make no
 * collective call, and must use neither the worker nor its group. fast_observer_scalar() for
 * another observer is allowed. */
typedef struct fast_observer_functions {
  size_t struct_size; /* sizeof(fast_observer_functions) */
  void (*on_phase)(void* user, const fast_phase_event* event);
  void (*on_message)(void* user, const fast_message_event* event);
  void (*on_peer)(void* user, const fast_peer_event* event);
  void (*on_scalar)(void* user, const fast_scalar_event* event);
  void (*on_milestone)(void* user, const fast_milestone_event* event);
  void (*on_values)(void* user, const fast_values_event* event);
  void (*destroy)(void* user); /* once, when nothing uses the observer any more */
} fast_observer_functions;
/* The struct is copied. When this fails, `destroy` is not called. */
fast_status fast_observer_create(const fast_observer_functions* functions, void* user,
                                 fast_observer** observer);
/* Ready observers; docs/how-to/look-at-training.md describes what they write. A directory is made
 * if needed. If a file cannot be written later (disk full), there is one line on standard error. */
/* A timeline of one worker for Perfetto; fast-trace joins those of all workers. */
fast_status fast_observer_trace(const char* directory, int worker, fast_observer** observer);
/* The same with its newest `size_bytes` (fast_observer_trace: 64 MiB), of the rounds from
 * `first_round` to `last_round`. -1: all rounds that follow. */
fast_status fast_observer_trace_rounds(const char* directory, int worker, size_t size_bytes,
                                       int64_t first_round, int64_t last_round,
                                       fast_observer** observer);
/* An event file; TensorBoard shows each directory as a run of its own. */
fast_status fast_observer_tensorboard(const char* directory, fast_observer** observer);
/* Serves http://127.0.0.1:port/metrics with the label `worker` until nothing uses the observer. */
fast_status fast_observer_prometheus(int port, int worker, fast_observer** observer);
/* The same on another address of this host; 0.0.0.0: all. No encryption and no password. */
fast_status fast_observer_prometheus_at(const char* address, int port, int worker,
                                        fast_observer** observer);
/* What uses the observer keeps it. */
void fast_observer_free(fast_observer* observer);
/* Workers and runs that are made with these options tell this observer, and those added before. */
fast_status fast_options_observe(fast_options* options, const fast_observer* observer);
/* Tells an observer a number. Threads may share the observer for this and fast_options_observe().
 */
fast_status fast_observer_scalar(const fast_observer* observer, const char* name, double value,
                                 int worker, int64_t round);

/* Collective. `topology`: a name ("torus2d") or a file; options may be NULL. All adopt worker 0's
 * weights, unless initial is as_is. */
fast_status fast_worker_create(const fast_group* group, const char* topology,
                               const fast_tensor* tensors, size_t tensor_count,
                               const fast_options* options, fast_worker** worker);
/* A round in two halves, around a step of the caller's own. A loss that is not finite fails the
 * worker before its weights are published; learning_rate is for the rules that need it, else 0. A
 * worker whose calls failed has left, and the others are told. */
fast_status fast_worker_begin_round(fast_worker* worker);
fast_status fast_worker_end_round(fast_worker* worker, double loss, double learning_rate);
/* The same round a function, which sets *loss and returns 0. */
typedef int (*fast_step_function)(void* user, double* loss);
fast_status fast_worker_step(fast_worker* worker, fast_step_function step, void* user,
                             double learning_rate, double* loss);

int fast_worker_rank(const fast_worker* worker);
int fast_worker_size(const fast_worker* worker);
int64_t fast_worker_round(const fast_worker* worker);
/* Tells the worker's observers a number ("train/accuracy") of its round. Without any, does nothing.
 */
fast_status fast_worker_scalar(const fast_worker* worker, const char* name, double value);
typedef struct fast_stats {
  size_t struct_size; /* set by the caller to sizeof(fast_stats) */
  int64_t rounds, reads, fresh_reads, rejected, skipped, messages_sent, messages_held;
  double step_s, wait_s, publish_s, mix_s, bytes_sent;
} fast_stats;
fast_status fast_worker_stats(const fast_worker* worker, fast_stats* stats);
/* The average of all workers' newest publications, into tensors of the same names and shapes. */
fast_status fast_worker_mean_model(const fast_worker* worker, const fast_tensor* out,
                                   size_t tensor_count);
fast_status fast_worker_consensus_distance(const fast_worker* worker, double* distance);
fast_status fast_worker_republish(fast_worker* worker);
fast_status fast_worker_rebind(fast_worker* worker, const fast_tensor* tensors,
                               size_t tensor_count);
/* From now on a spare may join as one worker more when the launcher asks for it: before round
 * `first`, `first` + `every` and so on (0 and 1: any round). Every worker calls it, with the same
 * rounds. fast_worker_size() is then one larger after fast_worker_end_round(), so choose data by it
 * in every round. If `every` is above 1, each further growth needs another call. Without spares,
 * does nothing. */
fast_status fast_worker_allow_growth(fast_worker* worker, int64_t first, int64_t every);
fast_status fast_worker_finish(fast_worker* worker);
fast_status fast_worker_await_finish(fast_worker* worker);
void fast_worker_abandon(fast_worker* worker); /* leaves as failed */
void fast_worker_free(fast_worker* worker);    /* leaves as finished, if it has not left */

/* A model of the caller's behind callbacks, for fast_train. Each returns 0, or another number to
 * end the run. */
typedef struct fast_batch {
  const float* inputs;         /* count x product(sample shape) */
  const int32_t* labels;       /* count x targets_per_sample; NULL where there are targets */
  const int64_t* sample_shape; /* sample_sides numbers */
  size_t count, values_per_sample;
  int32_t sample_sides;
  /* Tasks other than one class label a sample have labels for each step, or numbers to be
   * predicted. Backends without evaluate_task() see no such batch. */
  int32_t target_sides;        /* 0: one label or one number a sample */
  const float* targets;        /* count x targets_per_sample; NULL where there are labels */
  const int64_t* target_shape; /* target_sides numbers */
  size_t targets_per_sample;   /* 1 for one label a sample */
} fast_batch;

/* What evaluate_task() measures, as sums that are added over batches and workers. */
typedef struct fast_measures fast_measures;
typedef enum fast_measure_form {
  FAST_MEASURE_SHARE = 0,    /* sum / count, a number from 0 to 1 */
  FAST_MEASURE_MEAN,         /* sum / count */
  FAST_MEASURE_ROOT_OF_MEAN, /* the square root of that */
  FAST_MEASURE_EXP_OF_MEAN   /* e to the power of that */
} fast_measure_form;
/* Adds to the measure of this name, which the first call makes. The measure that was made first is
 * the most important one. A name has letters, digits and _, and is neither "loss" nor "samples".
 * A measure that is refused ends the evaluation with that error, also if evaluate_task() returns 0.
 */
fast_status fast_measures_add(fast_measures* measures, const char* name, fast_measure_form form,
                              double sum, double count);
/* The same for the area under the ROC curve, by a score of a sample of class 0 or 1. Scores in the
 * same 1/64 count as equal, and so do those beyond -32 and 32. */
fast_status fast_measures_add_score(fast_measures* measures, const char* name, double score,
                                    int is_class_1);

typedef struct fast_backend_functions {
  size_t struct_size; /* sizeof(fast_backend_functions) */
  const char* name;
  /* One optimizer step; *loss becomes the batch's mean loss before it. If hook is not NULL,
   * train calls hook(hook_context, gradients, count) between gradients and step, with one gradient
   * a parameter, in order. */
  int (*train)(void* user, const fast_batch* batch,
               int (*hook)(void* hook_context, const fast_tensor* gradients, size_t count),
               void* hook_context, double* loss);
  int (*evaluate)(void* user, const fast_batch* batch, double* loss_sum, size_t* correct);
  int (*set_learning_rate)(void* user, double learning_rate);
  void (*destroy)(void* user); /* may be NULL */
  /* For metrics; each may be NULL. correct_in_step counts the samples of the last train() whose
   * largest output was their label's, before the step. The Euclidean norm of its gradients is over
   * all parameters, after the hook and before clipping. It is asked for once an epoch. */
  int (*correct_in_step)(void* user, size_t* correct);
  int (*gradient_norm)(void* user, double* norm);
  /* In place of evaluate(), which may then be NULL, for all tasks: class labels, labels for each
   * step, numbers. Adds measures by name. A batch may lack some of them. If no batch has any, the
   * mean loss is reported. NULL: evaluate() is called, and other tasks than one class label a
   * sample are refused. */
  int (*evaluate_task)(void* user, const fast_batch* batch, double* loss_sum,
                       fast_measures* measures);
} fast_backend_functions;
/* `destroy` is called by fast_backend_free(), and when this fails. */
fast_status fast_backend_create(const fast_backend_functions* functions, void* user,
                                const fast_tensor* tensors, size_t tensor_count,
                                fast_backend** backend);
void fast_backend_free(fast_backend* backend);

/* Collective. Trains on data that docs/reference/data.md describes ("fashion-mnist", "table.csv",
 * a directory), and leaves the mean model in the tensors.
 * The summary, a table, is there until this thread's next call of this function; may be NULL.
 * A spare waits in this call until it takes a seat. If fast_group_has_seat() is 0 afterwards, the
 * summary is "". */
fast_status fast_train(const fast_group* group, const char* topology, fast_backend* backend,
                       const char* data, const fast_options* options, const char** summary);

/* Proves a backend: the suite of fast/testing/conformance.hpp on samples of that shape. make() sets
 * *backend to a new one with weights from `seed`, which the suite frees; it is called on several
 * threads at once. FAST_OK when all checks pass, else FAST_ERROR_ARGUMENT. The report is there
 * until this thread's next call of this function; may be NULL. */
typedef int (*fast_make_backend)(void* user, uint64_t seed, fast_backend** backend);
fast_status fast_check_backend(fast_make_backend make, void* user, const int64_t* sample_shape,
                               int32_t sample_sides, int32_t classes, const char** report);

#ifdef __cplusplus
}
#endif

#endif
