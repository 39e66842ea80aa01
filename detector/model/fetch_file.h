/* The file that a fetch fills: written by libuv's threads, while the next bytes come. */
#ifndef DETECTOR_MODEL_FETCH_FILE_H
#define DETECTOR_MODEL_FETCH_FILE_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum { FETCH_FILE_BYTES = 256 << 10 };

struct fetch_file {
    uv_loop_t *loop;
    uv_fs_t request;
    int fd;
    uint64_t offset;        /* of what is written */
    unsigned char *filling; /* what came since */
    size_t filled;
    unsigned char *writing; /* what is being written */
    size_t to_write, written;
    bool is_writing;
    int code; /* of the first write that failed */
    /* Something was written, or failed; nothing else is called by this. */
    void (*on_step)(struct fetch_file *file);
};

/* Duplicates the descriptor. */
int fetch_file_init(struct fetch_file *file, uv_loop_t *loop, int fd, struct baton_error *reterr);
void fetch_file_fini(struct fetch_file *file); /* not while it is writing */

/* Takes all of it, or nothing where there is no room until the next step. */
bool fetch_file_put(struct fetch_file *file, const void *bytes, size_t count);

/* Everything that came is written, or never will be. */
bool fetch_file_is_idle(const struct fetch_file *file);

/* The bytes that are there, written or not. */
uint64_t fetch_file_bytes(const struct fetch_file *file);

/* Forgets all of it; idle only. Returns a code. */
int fetch_file_clear(struct fetch_file *file);

#endif
