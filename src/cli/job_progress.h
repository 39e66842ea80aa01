/* What a command says of its progress: a pipe for lines with a number from 0 to 100, such as "40"
 * or "7.5%". One loop's thread. */
#ifndef CLI_JOB_PROGRESS_H
#define CLI_JOB_PROGRESS_H

#include "base/error.h"

#include <uv.h>

struct job_progress; /* opaque */

struct job_progress_calls {
    void (*on_permille)(void *userdata, int permille); /* 0 to 1000 */
    void (*on_wrong)(void *userdata); /* a line says something else, and is left out; once */
    void *userdata;
};

/* *ret_write is the end for the command, until job_progress_started(). BATON_EIO, BATON_ENOMEM. */
int job_progress_open(struct job_progress **ret, uv_loop_t *loop, int *ret_write,
                      const struct job_progress_calls *calls, struct baton_error *reterr);
/* The command has its end of the pipe, or will never have it. */
void job_progress_started(struct job_progress *progress);
void job_progress_close(struct job_progress *progress); /* NULL allowed */

#endif
