/* baton-camera: one camera, decoded in a process of its own.
 *
 *   config from the socket ─▶ broker (broker.h), fences (confine.h) ─▶ camera opened
 *                                                   ─▶ more fences ─▶ frames … end
 *
 * What it parses comes from the network, so it is built to be lost: it holds one camera's password,
 * one connection and nothing else, and when it crashes or hangs, one camera is reopened.
 */
#include "detector/camera/broker.h"
#include "detector/camera/confine.h"
#include "detector/camera/message.h"
#include "detector/camera/publish.h"
#include "detector/camera/snapshot.h"
#include "detector/camera/stream.h"
#include "detector/helper/helper.h"

#include <errno.h>
#include <libavutil/log.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    EXIT_USAGE = 2,
    /* With too little CPU for all, models have priority: a frame that is decoded and never shown to
     * a model is wasted. */
    NICENESS = 5,
};

/* FFmpeg's own log would show the URL. */
static void say_nothing(void *context, int level, const char *format, va_list arguments)
{
    (void)context;
    (void)level;
    (void)format;
    (void)arguments;
}

static bool read_config(struct camera_config *config)
{
    return recv(HELPER_FD, config, sizeof(*config), MSG_TRUNC) == sizeof(*config) &&
           config->version == MESSAGE_VERSION;
}

/* Only the port of the URL can be dialled. */
static int confine(const struct camera_config *config, struct confinement *confinement,
                   struct baton_error *reterr)
{
    int rc = 0;

    *confinement = (struct confinement){
        .port = config->parts.port,
        .uses_hardware = config->options.hardware[0] != '\0',
        .readable = config->options.ca_file[0] != '\0' ? config->options.ca_file : NULL,
        .uses_udp = config->options.uses_udp};
    if (config->kind != SOURCE_FILE) {
        rc = broker_start(config, confinement, reterr);
    }
    return rc ? rc : confine_process(confinement, reterr);
}

/* After the broker was cloned, which shares no memory. */
static int map_ring(struct publisher *publisher, struct baton_error *reterr)
{
    void *memory = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, HELPER_FILE, 0);

    (void)close(HELPER_FILE);
    if (memory == MAP_FAILED) {
        return error_set(reterr, BATON_ENOMEM, "memory for pictures: %s", strerror(errno));
    }
    publisher->slots.memory = memory;
    return 0;
}

static int run(const struct camera_config *config, struct publisher *publisher,
               struct baton_error *reterr)
{
    struct confinement confinement;
    AVIOContext *file = NULL;
    int rc;

    if (config->kind == SOURCE_FILE) {
        rc = avio_open(&file, config->url, AVIO_FLAG_READ);
        if (rc < 0) {
            return error_set(reterr, BATON_ENOENT, "open: %s", strerror(AVUNERROR(rc)));
        }
    }
    publisher->is_lossless = config->options.is_lossless;
    publisher->sequence = config->sequence;
    publisher->counts = config->counts;
    /* Two queries at once would leave by sendmmsg(2), which the filter refuses. */
    (void)setenv("RES_OPTIONS", "single-request", 1);
    rc = confine(config, &confinement, reterr);
    rc = rc ? rc : map_ring(publisher, reterr);
    if (rc == 0) {
        rc = config->kind == SOURCE_SNAPSHOT
                 ? snapshot_run(config, publisher, reterr)
                 : stream_run(config, &confinement, file, publisher, reterr);
    }
    return rc;
}

int main(int argc, char **argv)
{
    static struct camera_config config;
    static struct publisher publisher;
    struct baton_error error = {0};

    helper_begin(argc, argv,
                 "It opens one camera, decodes it and puts the frames into shared memory.");
    (void)setpriority(PRIO_PROCESS, 0, NICENESS);
    (void)!chdir("/"); /* no folder of another user is open to what takes it over */
    broker_prepare();
    if (!read_config(&config)) {
        return EXIT_USAGE; /* not started by baton-detector, or it has ended */
    }
    av_log_set_callback(say_nothing);
    publisher.socket = HELPER_FD;
    error.code = run(&config, &publisher, &error);
    publisher_end(&publisher, &error);
    _exit(EXIT_SUCCESS); /* handlers of libraries might make calls that are refused now */
}
