#include "cli/job_progress.h"

#include "cli/job_output.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>

enum { PERMILLE_MAX = 1000, NO_NUMBER = -1 };

struct job_progress {
    struct job_output *pipe;
    struct job_progress_calls calls;
    bool was_wrong;
    size_t bytes;  /* of the latest line; as many as fit, and it is too long */
    char line[16]; /* what has come of it */
};

/* Digits after the first decimal are left out. */
static int read_line(const char *line, size_t bytes)
{
    char *at;
    unsigned long permille = strtoul(line, &at, 10) * 10;

    if (!isdigit((unsigned char)line[0]) || permille > PERMILLE_MAX) {
        return NO_NUMBER;
    }
    if (at[0] == '.' && isdigit((unsigned char)at[1])) {
        permille += (unsigned long)(at[1] - '0');
        for (at++; isdigit((unsigned char)*at); at++) {
        }
    }
    at += *at == '%';
    return at == line + bytes && permille <= PERMILLE_MAX ? (int)permille : NO_NUMBER;
}

static int take_line(struct job_progress *progress)
{
    bool fits = progress->bytes < sizeof(progress->line);
    int permille;

    progress->bytes = fits ? progress->bytes : 0;
    progress->line[progress->bytes] = '\0';
    permille = read_line(progress->line, progress->bytes);
    progress->bytes = 0;
    if (permille == NO_NUMBER && !progress->was_wrong) {
        progress->was_wrong = true;
        progress->calls.on_wrong(progress->calls.userdata);
    }
    return permille;
}

/* Of a piece the latest number counts. */
static void on_data(void *userdata, const uint8_t *data, size_t bytes)
{
    struct job_progress *progress = userdata;
    int latest = NO_NUMBER;

    for (size_t i = 0; i < bytes; i++) {
        if (data[i] == '\n') {
            int permille = take_line(progress);
            latest = permille != NO_NUMBER ? permille : latest;
        } else if (progress->bytes < sizeof(progress->line)) {
            progress->line[progress->bytes++] = (char)data[i];
        }
    }
    if (latest != NO_NUMBER) {
        progress->calls.on_permille(progress->calls.userdata, latest);
    }
}

int job_progress_open(struct job_progress **ret, uv_loop_t *loop, int *ret_write,
                      const struct job_progress_calls *calls, struct baton_error *reterr)
{
    struct job_progress *progress = calloc(1, sizeof(*progress));
    int code = progress ? job_output_open(&progress->pipe, loop, ret_write, reterr)
                        : error_set(reterr, BATON_ENOMEM, "out of memory");

    if (code != BATON_OK) {
        free(progress);
        return code;
    }
    progress->calls = *calls;
    job_output_listen(progress->pipe, on_data, progress);
    *ret = progress;
    return BATON_OK;
}

void job_progress_started(struct job_progress *progress)
{
    job_output_started(progress->pipe);
}

void job_progress_close(struct job_progress *progress)
{
    if (progress) {
        job_output_close(progress->pipe);
        free(progress);
    }
}
