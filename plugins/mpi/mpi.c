/* The plugin for MPI: a group (src/base/group.h) of the processes that mpirun or srun started.
 *
 * Nobody ever blocks inside MPI: what is waited for is begun and then asked for, with naps between the questions, so
 * that a rank that waits takes no processor from one that works, and hears of an interruption or of another rank's
 * failure. Buffers of what was begun belong to the plugin; where it is given up they stay, since MPI may still write
 * there.
 *
 * Rank 0 has a thread besides, the clerk, which answers the others while rank 0 itself computes: it hands out items and
 * passes on failures. */
#include "base/group.h"

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ASK = 1, ANSWER, FAILURE, GO };        /* tags */
enum { NEXT, FAIL, BYE };                     /* what is asked of the clerk */
enum { PIECE = 1 << 22, FAREWELL = 2 };       /* bytes of a collective; seconds to wait for the others at a bad end */
enum { SHORTEST = 20000, LONGEST = 1000000 }; /* naps, in nanoseconds */

typedef struct question {
    int kind;
    uint64_t round, items;
    espi_group_failure failure;
} question;

typedef struct mpi_group {
    int rank, size;
    MPI_Comm work, talk;    /* for collectives, and for the clerk */
    pthread_mutex_t lock;   /* around every call of MPI, and all below */
    pthread_mutex_t asking; /* one question at a time */
    bool failed, known;     /* some rank has failed; and it is another one, told in `failure` */
    espi_group_failure failure;
    double looked; /* when it was last asked for by who works */
    /* of the clerk */
    pthread_t clerk;
    bool clerk_runs, stop;
    uint64_t round, next;
    double *since; /* per rank: when it got its item; 0: it has none */
    int byes;
} mpi_group;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Naps grow, since what takes long may take longer. */
static void nap(long *length)
{
    const struct timespec pause = {.tv_nsec = *length};
    nanosleep(&pause, NULL);
    if (*length < LONGEST) *length *= 2;
}

static espi_group_result refuse(const espi_group_wait *wait, int code)
{
    int size = 0;
    char words[MPI_MAX_ERROR_STRING] = "";
    MPI_Error_string(code, words, &size);
    snprintf(wait->why, ESPI_GROUP_WORDS, "%s", words);
    return ESPI_GROUP_BROKEN;
}

/* ------------------------------------------------------------------- clerk */

/* With the lock held: whatever was sent without waiting. Sent messages are small; MPI keeps them. */
static void post(const mpi_group *g, const void *bytes, size_t size, int to, int tag)
{
    MPI_Request request;
    void *copy = malloc(size); /* stays: nobody waits for the end of the sending */
    if (copy == NULL) return;
    memcpy(copy, bytes, size);
    if (MPI_Isend(copy, (int)size, MPI_BYTE, to, tag, g->talk, &request) == MPI_SUCCESS) MPI_Request_free(&request);
}

/* With the lock held, at rank 0: the first failure is told to all but the one who failed. */
static void pass_on(mpi_group *g, const espi_group_failure *failure)
{
    if (g->failed) return;
    g->failed = true;
    g->failure = *failure;
    g->known = failure->rank != g->rank;
    for (int r = 1; r < g->size; r++)
        if (r != failure->rank) post(g, failure, sizeof *failure, r, FAILURE);
}

/* With the lock held. */
static uint64_t hand_out(mpi_group *g, int rank, uint64_t round, uint64_t items)
{
    if (round != g->round) g->next = 0;
    g->round = round;
    const uint64_t item = g->next++;
    g->since[rank] = item < items ? seconds() : 0.0;
    return item;
}

/* With the lock held: answers one question; false: there is none. */
static bool answer(mpi_group *g)
{
    question q;
    MPI_Status status;
    int there = 0;
    if (MPI_Iprobe(MPI_ANY_SOURCE, ASK, g->talk, &there, &status) != MPI_SUCCESS || !there) return false;
    if (MPI_Recv(&q, sizeof q, MPI_BYTE, status.MPI_SOURCE, ASK, g->talk, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return false;
    if (q.kind == NEXT) {
        const uint64_t item = hand_out(g, status.MPI_SOURCE, q.round, q.items);
        MPI_Send(&item, sizeof item, MPI_BYTE, status.MPI_SOURCE, ANSWER, g->talk); /* small, so it does not wait */
    } else if (q.kind == FAIL) {
        pass_on(g, &q.failure);
    } else {
        g->byes++;
    }
    return true;
}

static void *serve(void *argument)
{
    mpi_group *g = argument;
    long length = SHORTEST;
    for (bool stop = false; !stop;) {
        pthread_mutex_lock(&g->lock);
        const bool some = answer(g);
        stop = g->stop;
        pthread_mutex_unlock(&g->lock);
        if (some) length = SHORTEST;
        else nap(&length);
    }
    return NULL;
}

/* ----------------------------------------------------------------- waiting */

/* With the lock held: whether another rank has failed. */
static bool look_for_failure(mpi_group *g)
{
    int there = 0;
    if (g->rank != 0 && !g->failed && MPI_Iprobe(0, FAILURE, g->talk, &there, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
        there &&
        MPI_Recv(&g->failure, sizeof g->failure, MPI_BYTE, 0, FAILURE, g->talk, MPI_STATUS_IGNORE) == MPI_SUCCESS)
        g->failed = g->known = true;
    return g->known;
}

/* Asked by ranks that work, after every little step; MPI, where it finds nothing to do, gives the processor away. */
static bool failure_of(void *group, espi_group_failure *out)
{
    static const double often = 0.02; /* seconds */
    mpi_group *g = group;
    const double now = seconds();
    pthread_mutex_lock(&g->lock);
    if (!g->known && now - g->looked > often) {
        g->looked = now;
        (void)look_for_failure(g);
    }
    const bool known = g->known;
    if (known) *out = g->failure;
    pthread_mutex_unlock(&g->lock);
    return known;
}

/* Until the request is done. */
static espi_group_result await(mpi_group *g, MPI_Request *request, const espi_group_wait *wait)
{
    long length = SHORTEST;
    for (;;) {
        int done = 0;
        pthread_mutex_lock(&g->lock);
        const int code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        const bool failed = code == MPI_SUCCESS && !done && look_for_failure(g);
        pthread_mutex_unlock(&g->lock);
        if (code != MPI_SUCCESS) return refuse(wait, code);
        if (failed) return ESPI_GROUP_FAILED;
        if (done) return ESPI_GROUP_OK;
        if (!wait->go_on(wait->user)) return ESPI_GROUP_STOPPED;
        nap(&length);
    }
}

typedef int (*begin_function)(mpi_group *g, void *in, void *out, int size, MPI_Request *request);

/* One collective over buffers of the plugin. */
static espi_group_result together(mpi_group *g, begin_function begin, void *in, void *out, size_t size,
                                  const espi_group_wait *wait)
{
    MPI_Request request;
    pthread_mutex_lock(&g->lock);
    const bool failed = look_for_failure(g) || g->failed;
    const int code = failed ? MPI_SUCCESS : begin(g, in, out, (int)size, &request);
    pthread_mutex_unlock(&g->lock);
    if (failed) return ESPI_GROUP_FAILED;
    return code == MPI_SUCCESS ? await(g, &request, wait) : refuse(wait, code);
}

static espi_group_result no_memory(const espi_group_wait *wait)
{
    snprintf(wait->why, ESPI_GROUP_WORDS, "out of memory");
    return ESPI_GROUP_BROKEN;
}

static int begin_broadcast(mpi_group *g, void *in, void *out, int size, MPI_Request *request)
{
    (void)out;
    return MPI_Ibcast(in, size, MPI_BYTE, 0, g->work, request);
}

static int begin_gather(mpi_group *g, void *in, void *out, int size, MPI_Request *request)
{
    return MPI_Iallgather(in, size, MPI_BYTE, out, size, MPI_BYTE, g->work, request);
}

static int begin_collect(mpi_group *g, void *in, void *out, int size, MPI_Request *request)
{
    return MPI_Igather(in, size, MPI_BYTE, out, size, MPI_BYTE, 0, g->work, request);
}

static int begin_merge(mpi_group *g, void *in, void *out, int size, MPI_Request *request)
{
    return MPI_Iallreduce(in, out, size, MPI_BYTE, MPI_BOR, g->work, request);
}

static espi_group_result broadcast(void *group, void *bytes, size_t size, const espi_group_wait *wait)
{
    char *piece = malloc(PIECE);
    espi_group_result result = piece != NULL ? ESPI_GROUP_OK : no_memory(wait);
    for (size_t first = 0; result == ESPI_GROUP_OK && first < size; first += PIECE) {
        const size_t some = size - first < PIECE ? size - first : PIECE;
        memcpy(piece, (char *)bytes + first, some);
        result = together(group, begin_broadcast, piece, NULL, some, wait);
        if (result == ESPI_GROUP_OK) memcpy((char *)bytes + first, piece, some);
    }
    if (result == ESPI_GROUP_OK) free(piece);
    return result;
}

/* `begin` gives the pieces of all ranks to those that have `all`. */
static espi_group_result bring(mpi_group *group, begin_function begin, const void *bytes, size_t size, void *all,
                               const espi_group_wait *wait)
{
    const size_t ranks = (size_t)group->size, most = PIECE / ranks + 1;
    char *piece = malloc(most), *pieces = malloc(most * ranks);
    espi_group_result result = piece != NULL && pieces != NULL ? ESPI_GROUP_OK : no_memory(wait);
    for (size_t first = 0; result == ESPI_GROUP_OK && first < size; first += most) {
        const size_t some = size - first < most ? size - first : most;
        memcpy(piece, (const char *)bytes + first, some);
        result = together(group, begin, piece, pieces, some, wait);
        for (size_t r = 0; result == ESPI_GROUP_OK && all != NULL && r < ranks; r++)
            memcpy((char *)all + r * size + first, pieces + r * some, some);
    }
    if (result == ESPI_GROUP_OK) {
        free(piece);
        free(pieces);
    }
    return result;
}

static espi_group_result gather(void *group, const void *bytes, size_t size, void *all, const espi_group_wait *wait)
{
    return bring(group, begin_gather, bytes, size, all, wait);
}

static espi_group_result collect(void *group, const void *bytes, size_t size, void *all, const espi_group_wait *wait)
{
    mpi_group *g = group;
    return bring(g, begin_collect, bytes, size, g->rank == 0 ? all : NULL, wait);
}

static espi_group_result merge(void *group, void *bytes, size_t size, const espi_group_wait *wait)
{
    char *piece = malloc(PIECE), *merged = malloc(PIECE);
    espi_group_result result = piece != NULL && merged != NULL ? ESPI_GROUP_OK : no_memory(wait);
    for (size_t first = 0; result == ESPI_GROUP_OK && first < size; first += PIECE) {
        const size_t some = size - first < PIECE ? size - first : PIECE;
        memcpy(piece, (char *)bytes + first, some);
        result = together(group, begin_merge, piece, merged, some, wait);
        if (result == ESPI_GROUP_OK) memcpy((char *)bytes + first, merged, some);
    }
    if (result == ESPI_GROUP_OK) {
        free(piece);
        free(merged);
    }
    return result;
}

/* ----------------------------------------------------------------- dealing */

/* With `asking` held, at ranks other than 0. */
static espi_group_result ask_next(mpi_group *g, const question *q, uint64_t *item, const espi_group_wait *wait)
{
    MPI_Request request;
    uint64_t *answered = malloc(sizeof *answered); /* stays where the answer is given up */
    if (answered == NULL) return no_memory(wait);
    pthread_mutex_lock(&g->lock);
    int code = MPI_Irecv(answered, sizeof *answered, MPI_BYTE, 0, ANSWER, g->talk, &request);
    if (code == MPI_SUCCESS) post(g, q, sizeof *q, 0, ASK);
    pthread_mutex_unlock(&g->lock);
    if (code != MPI_SUCCESS) return refuse(wait, code);
    const espi_group_result result = await(g, &request, wait);
    if (result != ESPI_GROUP_OK) return result;
    *item = *answered;
    free(answered);
    return ESPI_GROUP_OK;
}

static espi_group_result next(void *group, uint64_t round, uint64_t items, uint64_t *item, const espi_group_wait *wait)
{
    mpi_group *g = group;
    const question q = {.kind = NEXT, .round = round, .items = items};
    espi_group_result result = ESPI_GROUP_OK;
    pthread_mutex_lock(&g->lock);
    const bool failed = look_for_failure(g) || g->failed;
    if (!failed && g->rank == 0) *item = hand_out(g, 0, round, items);
    pthread_mutex_unlock(&g->lock);
    if (failed) return ESPI_GROUP_FAILED;
    if (g->rank == 0) return ESPI_GROUP_OK;
    pthread_mutex_lock(&g->asking);
    result = ask_next(g, &q, item, wait);
    pthread_mutex_unlock(&g->asking);
    return result;
}

static double busy(void *group, int rank)
{
    mpi_group *g = group;
    pthread_mutex_lock(&g->lock);
    const double since = g->since != NULL ? g->since[rank] : 0.0;
    pthread_mutex_unlock(&g->lock);
    return since > 0.0 ? seconds() - since : -1.0;
}

static void fail(void *group, const espi_group_failure *failure)
{
    mpi_group *g = group;
    const question q = {.kind = FAIL, .failure = *failure};
    pthread_mutex_lock(&g->lock);
    if (g->rank == 0) pass_on(g, failure);
    else if (!g->failed) post(g, &q, sizeof q, 0, ASK);
    g->failed = true;
    pthread_mutex_unlock(&g->lock);
}

/* ------------------------------------------------------ opening and closing */

/* Waits until the others know of a failure and have said what they have to say: when the first of them ends, mpirun
 * ends them all. Whether all were heard of. */
static bool part(mpi_group *g)
{
    const double began = seconds();
    const question bye = {.kind = BYE};
    long length = SHORTEST;
    bool all = false;
    pthread_mutex_lock(&g->lock);
    if (g->rank != 0) post(g, &bye, sizeof bye, 0, ASK);
    pthread_mutex_unlock(&g->lock);
    for (bool told = false; !all && !told && seconds() - began < FAREWELL;) {
        int there = 0;
        pthread_mutex_lock(&g->lock);
        if (g->rank != 0 && MPI_Iprobe(0, GO, g->talk, &there, MPI_STATUS_IGNORE) == MPI_SUCCESS && there)
            told = MPI_Recv(&all, sizeof all, MPI_BYTE, 0, GO, g->talk, MPI_STATUS_IGNORE) == MPI_SUCCESS;
        if (g->rank == 0) all = g->byes == g->size - 1;
        pthread_mutex_unlock(&g->lock);
        if (!all && !told) nap(&length);
    }
    pthread_mutex_lock(&g->lock);
    for (int r = 1; g->rank == 0 && r < g->size; r++) post(g, &all, sizeof all, r, GO);
    pthread_mutex_unlock(&g->lock);
    return all;
}

static void close_group(void *group, bool good)
{
    mpi_group *g = group;
    if (!good && !part(g)) return; /* somebody is gone: nothing of MPI can be ended in order */
    pthread_mutex_lock(&g->lock);
    g->stop = true;
    pthread_mutex_unlock(&g->lock);
    if (g->clerk_runs) pthread_join(g->clerk, NULL);
    MPI_Finalize();
    free(g->since);
    pthread_mutex_destroy(&g->lock);
    pthread_mutex_destroy(&g->asking);
    free(g);
}

/* MPI_Init alone would start a group of one process, each time. */
static bool was_started(void)
{
    static const char *const signs[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (getenv(signs[i]) != NULL) return true;
    return false;
}

static espi_group_result start(mpi_group *g, char *why)
{
    int level = MPI_THREAD_SINGLE;
    snprintf(why, ESPI_GROUP_WORDS, "MPI cannot be started here");
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS) return ESPI_GROUP_BROKEN;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* inherited by the two below */
    if (level < MPI_THREAD_SERIALIZED) {
        snprintf(why, ESPI_GROUP_WORDS, "this MPI cannot be used by several threads");
        return ESPI_GROUP_BROKEN;
    }
    if (MPI_Comm_rank(MPI_COMM_WORLD, &g->rank) != MPI_SUCCESS ||
        MPI_Comm_size(MPI_COMM_WORLD, &g->size) != MPI_SUCCESS ||
        MPI_Comm_dup(MPI_COMM_WORLD, &g->work) != MPI_SUCCESS || MPI_Comm_dup(MPI_COMM_WORLD, &g->talk) != MPI_SUCCESS)
        return ESPI_GROUP_BROKEN;
    if (g->rank != 0) return ESPI_GROUP_OK;
    g->since = calloc((size_t)g->size, sizeof *g->since);
    g->clerk_runs = g->since != NULL && pthread_create(&g->clerk, NULL, serve, g) == 0;
    if (g->clerk_runs) return ESPI_GROUP_OK;
    snprintf(why, ESPI_GROUP_WORDS, "no thread can be started");
    return ESPI_GROUP_BROKEN;
}

static espi_group_result open_group(void **group, int *rank, int *size, char *why)
{
    int begun = 0;
    if (!was_started()) {
        snprintf(why, ESPI_GROUP_WORDS,
                 "this process was not started by mpirun or srun --mpi=pmix, so it has no others to work with");
        return ESPI_GROUP_BROKEN;
    }
    MPI_Initialized(&begun);
    mpi_group *g = begun ? NULL : calloc(1, sizeof *g);
    if (g == NULL) {
        snprintf(why, ESPI_GROUP_WORDS, begun ? "MPI was started in this process before" : "out of memory");
        return ESPI_GROUP_BROKEN;
    }
    pthread_mutex_init(&g->lock, NULL);
    pthread_mutex_init(&g->asking, NULL);
    const espi_group_result result = start(g, why);
    if (result != ESPI_GROUP_OK) return result; /* the process ends; MPI may hold on to what there is */
    *group = g;
    *rank = g->rank;
    *size = g->size;
    return ESPI_GROUP_OK;
}

static const espi_group_table table = {.head = {.name = "mpi", .version = ESPI_GROUP_VERSION, .size = sizeof table},
                                       .open = open_group,
                                       .close = close_group,
                                       .broadcast = broadcast,
                                       .gather = gather,
                                       .collect = collect,
                                       .merge = merge,
                                       .next = next,
                                       .fail = fail,
                                       .failure = failure_of,
                                       .busy = busy};

ESP_API const espi_plugin_head *espalier_plugin(void);
const espi_plugin_head *espalier_plugin(void) { return &table.head; }
