#include "detector/model/fetch_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_on(struct fetch_file *file);

int fetch_file_init(struct fetch_file *file, uv_loop_t *loop, int fd, struct baton_error *reterr)
{
    *file = (struct fetch_file){.loop = loop, .fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)};
    file->filling = malloc(FETCH_FILE_BYTES);
    file->writing = malloc(FETCH_FILE_BYTES);
    if (file->fd < 0 || file->filling == NULL || file->writing == NULL) {
        fetch_file_fini(file);
        return error_set(reterr, BATON_ENOMEM, "out of memory or descriptors for a fetch");
    }
    return 0;
}

void fetch_file_fini(struct fetch_file *file)
{
    if (file->fd >= 0) {
        close(file->fd);
    }
    free(file->filling);
    free(file->writing);
    *file = (struct fetch_file){.fd = -1};
}

static void on_write(uv_fs_t *request)
{
    struct fetch_file *file = request->data;
    ssize_t result = request->result;

    uv_fs_req_cleanup(request);
    file->is_writing = false;
    if (result <= 0) {
        file->code = error_from_errno(result < 0 ? (int)-result : EIO);
    } else {
        file->written += (size_t)result;
        file->offset += (uint64_t)result;
        write_on(file);
    }
    file->on_step(file);
}

/* Writes the rest of the last bytes; after that the next ones, if there are any. */
static void write_on(struct fetch_file *file)
{
    uv_buf_t rest;
    int rc;

    if (file->is_writing || file->code != 0) {
        return;
    }
    if (file->written == file->to_write) {
        unsigned char *swap = file->writing;
        file->writing = file->filling;
        file->filling = swap;
        file->to_write = file->filled;
        file->written = 0;
        file->filled = 0;
    }
    if (file->written == file->to_write) {
        return;
    }
    rest = uv_buf_init((char *)file->writing + file->written,
                       (unsigned)(file->to_write - file->written));
    file->request.data = file;
    rc = uv_fs_write(file->loop, &file->request, file->fd, &rest, 1, (int64_t)file->offset,
                     on_write);
    file->is_writing = rc == 0;
    file->code = rc == 0 ? 0 : BATON_ENOMEM;
}

bool fetch_file_put(struct fetch_file *file, const void *bytes, size_t count)
{
    if (count > FETCH_FILE_BYTES - file->filled) {
        return false;
    }
    memcpy(file->filling + file->filled, bytes, count);
    file->filled += count;
    write_on(file);
    return true;
}

bool fetch_file_is_idle(const struct fetch_file *file)
{
    return !file->is_writing;
}

uint64_t fetch_file_bytes(const struct fetch_file *file)
{
    return file->offset + (file->to_write - file->written) + file->filled;
}

int fetch_file_clear(struct fetch_file *file)
{
    file->offset = 0;
    file->filled = file->to_write = file->written = 0;
    return ftruncate(file->fd, 0) == 0 ? 0 : error_from_errno(errno);
}
