/* The file of a fetch, written by libuv's threads while the next bytes arrive. */
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
    uint64_t offset;        /* of the written bytes */
    unsigned char *filling; /* bytes that arrived since */
    size_t filled;
    unsigned char *writing; /* bytes that are being written */
    size_t to_write, written;
    bool is_writing;
    int code; /* of the first write that failed */
    /* Called after each write, successful or not, and by nothing else. */
    void (*on_step)(struct fetch_file *file);
};

/* Duplicates the descriptor. */
int fetch_file_init(struct fetch_file *file, uv_loop_t *loop, int fd, struct baton_error *reterr);
void fetch_file_fini(struct fetch_file *file); /* not while it is writing */

/* Takes all of it, or nothing if there is no room until the next step. */
bool fetch_file_put(struct fetch_file *file, const void *bytes, size_t count);

/* True if no write is pending: all bytes were written, or a write has failed. */
bool fetch_file_is_idle(const struct fetch_file *file);

/* Returns the number of bytes, written or not. */
uint64_t fetch_file_bytes(const struct fetch_file *file);

/* Drops all bytes; only while nothing is written. Returns a code. */
int fetch_file_clear(struct fetch_file *file);

#endif
