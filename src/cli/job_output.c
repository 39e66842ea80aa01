#include "cli/job_output.h"

#include "work/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job_output {
    uv_pipe_t pipe;
    int write_end;                                                      /* -1: closed */
    size_t written;                                                     /* in all */
    void (*on_data)(void *userdata, const uint8_t *data, size_t bytes); /* or NULL */
    void *userdata;
    uint8_t read[4096];
    uint8_t ring[WORK_OUTPUT_MAX];
};

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *ret)
{
    struct job_output *output = handle->data;

    (void)wanted;
    *ret = uv_buf_init((char *)output->read, sizeof(output->read));
}

static void keep(struct job_output *output, const uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        output->ring[output->written++ % sizeof(output->ring)] = data[i];
    }
    if (output->on_data) {
        output->on_data(output->userdata, data, bytes);
    }
}

static void on_read(uv_stream_t *stream, ssize_t bytes, const uv_buf_t *buffer)
{
    if (bytes > 0) {
        keep(stream->data, (const uint8_t *)buffer->base, (size_t)bytes);
    } else if (bytes < 0) {
        (void)uv_read_stop(stream);
    }
}

int job_output_open(struct job_output **ret, uv_loop_t *loop, int *ret_write,
                    struct baton_error *reterr)
{
    struct job_output *output = calloc(1, sizeof(*output));
    int ends[2];

    if (!output) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    if (pipe2(ends, O_CLOEXEC) != 0) {
        free(output);
        return error_set(reterr, BATON_EIO, "a pipe for its output: %s", strerror(errno));
    }
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    (void)uv_pipe_init(loop, &output->pipe, 0);
    output->pipe.data = output;
    (void)uv_pipe_open(&output->pipe, ends[0]);
    (void)uv_read_start((uv_stream_t *)&output->pipe, on_room, on_read);
    *ret_write = output->write_end = ends[1];
    *ret = output;
    return BATON_OK;
}

void job_output_listen(struct job_output *output,
                       void (*on_data)(void *userdata, const uint8_t *data, size_t bytes),
                       void *userdata)
{
    output->on_data = on_data;
    output->userdata = userdata;
}

void job_output_started(struct job_output *output)
{
    if (output->write_end >= 0) {
        (void)close(output->write_end);
        output->write_end = -1;
    }
}

/* All writers are dead: what they wrote is in the pipe. */
static void drain(struct job_output *output)
{
    uv_os_fd_t fd;
    ssize_t bytes;

    if (uv_fileno((uv_handle_t *)&output->pipe, &fd) != 0) {
        return;
    }
    while ((bytes = read(fd, output->read, sizeof(output->read))) > 0) {
        keep(output, output->read, (size_t)bytes);
    }
}

void job_output_take(struct job_output *output, uint8_t **ret, size_t *ret_bytes)
{
    size_t room = sizeof(output->ring), from;

    *ret = NULL;
    *ret_bytes = 0;
    if (!output) {
        return;
    }
    job_output_started(output);
    drain(output);
    *ret_bytes = output->written < room ? output->written : room;
    from = output->written - *ret_bytes;
    *ret = *ret_bytes > 0 ? malloc(*ret_bytes) : NULL;
    if (!*ret) {
        *ret_bytes = 0;
    }
    for (size_t i = 0; i < *ret_bytes; i++) {
        (*ret)[i] = output->ring[(from + i) % room];
    }
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void job_output_close(struct job_output *output)
{
    if (output) {
        job_output_started(output);
        uv_close((uv_handle_t *)&output->pipe, on_closed);
    }
}
