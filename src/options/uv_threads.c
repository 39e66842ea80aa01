#include "options/uv_threads.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *pass(void *gate)
{
    (void)pthread_mutex_lock(gate);
    (void)pthread_mutex_unlock(gate);
    return NULL;
}

static void do_nothing(uv_work_t *work)
{
    (void)work;
}

int uv_threads_start(uv_loop_t *loop, int count, struct baton_error *reterr)
{
    static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    static uv_work_t work;
    pthread_t threads[UV_THREADS_MAX];
    char number[12];
    int started = 0, errnum = count <= UV_THREADS_MAX ? 0 : EINVAL;

    (void)pthread_mutex_lock(&gate);
    while (started < count && errnum == 0) {
        errnum = pthread_create(&threads[started], NULL, pass, &gate);
        started += errnum == 0;
    }
    (void)pthread_mutex_unlock(&gate);
    for (int i = 0; i < started; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    if (errnum != 0) {
        return error_set(reterr, BATON_EUNAVAILABLE,
                         "only %d of %d threads can be started: %s; raise the limit of tasks "
                         "(TasksMax=, --pids-limit, ulimit -u) or of memory",
                         started, count, strerror(errnum));
    }
    (void)snprintf(number, sizeof(number), "%d", count);
    (void)setenv("UV_THREADPOOL_SIZE", number, 1);
    return uv_queue_work(loop, &work, do_nothing, NULL);
}
