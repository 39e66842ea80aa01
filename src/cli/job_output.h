/* What a command writes: a pipe, of which the tail is kept. One loop's thread. */
#ifndef CLI_JOB_OUTPUT_H
#define CLI_JOB_OUTPUT_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct job_output; /* opaque */

/* *ret_write is the end for the command, until job_output_started(). BATON_EIO, BATON_ENOMEM. */
int job_output_open(struct job_output **ret, uv_loop_t *loop, int *ret_write,
                    struct baton_error *reterr);
/* Hands each piece on as it comes, borrowed during the call. */
void job_output_listen(struct job_output *output,
                       void (*on_data)(void *userdata, const uint8_t *data, size_t bytes),
                       void *userdata);
/* The command has its end of the pipe, or will never have it. */
void job_output_started(struct job_output *output);
/* The last WORK_OUTPUT_MAX bytes of what has come, for free(); NULL: nothing. `output` may be NULL.
 */
void job_output_take(struct job_output *output, uint8_t **ret, size_t *ret_bytes);
void job_output_close(struct job_output *output); /* NULL allowed; freed by the loop */

#endif
