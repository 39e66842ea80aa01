#include "listener.h"

#include "base/clock.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AGES_MAX = 1 << 20 };

static const char mark[] = "sentNs";
static uv_tcp_t tcp;
static uv_connect_t connecting;
static uv_write_t writing;
static char request[256];
static double *ages;
static size_t age_count;
static uint64_t heard;

/* What the scanner is in: the mark, what stands between it and the number, the number. */
static size_t matched;
static bool is_in_number;
static int64_t number;

static void note(void)
{
    heard++;
    if (age_count < AGES_MAX) {
        ages[age_count++] = (double)(clock_now().ns - number) / 1e6;
    }
}

static void scan(char byte)
{
    if (is_in_number) {
        if (isdigit((unsigned char)byte)) {
            number = number * 10 + (byte - '0');
            return;
        }
        if (number > 0) {
            is_in_number = false;
            note();
        }
        return;
    }
    matched = byte == mark[matched] ? matched + 1 : byte == mark[0];
    if (mark[matched] == '\0') {
        matched = 0;
        number = 0;
        is_in_number = true;
    }
}

static void on_alloc(uv_handle_t *handle, size_t bytes, uv_buf_t *ret)
{
    static char space[256 * 1024];
    (void)handle;
    (void)bytes;
    *ret = uv_buf_init(space, sizeof(space));
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    if (count < 0) {
        (void)fprintf(stderr, "/events ended: %s\n", uv_strerror((int)count));
        (void)uv_read_stop(stream);
    }
    for (ssize_t i = 0; i < count; i++) {
        scan(buffer->base[i]);
    }
}

static void on_connect(uv_connect_t *connect, int status)
{
    uv_buf_t bytes = uv_buf_init(request, (unsigned)strlen(request));

    if (status != 0) {
        (void)fprintf(stderr, "/events: %s\n", uv_strerror(status));
        exit(1);
    }
    (void)uv_write(&writing, connect->handle, &bytes, 1, NULL);
    (void)uv_read_start(connect->handle, on_alloc, on_read);
}

void listener_open(uv_loop_t *loop, unsigned port)
{
    struct sockaddr_in address;

    ages = ages ? ages : calloc(AGES_MAX, sizeof(*ages));
    (void)snprintf(request, sizeof(request),
                   "GET /events?only=detection HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
                   "Accept: text/event-stream\r\n\r\n",
                   port);
    (void)uv_ip4_addr("127.0.0.1", (int)port, &address);
    (void)uv_tcp_init(loop, &tcp);
    (void)uv_tcp_connect(&connecting, &tcp, (const struct sockaddr *)&address, on_connect);
}

uint64_t listener_heard(void)
{
    return heard;
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

void listener_ages(double *ret_p50, double *ret_p99, double *ret_max)
{
    *ret_p50 = *ret_p99 = *ret_max = 0;
    if (age_count > 0) {
        qsort(ages, age_count, sizeof(*ages), by_size);
        *ret_p50 = ages[age_count / 2];
        *ret_p99 = ages[age_count - 1 - age_count / 100];
        *ret_max = ages[age_count - 1];
        age_count = 0;
    }
}
