/* A service that shares cameras among its processes. Whoever leads assigns each camera to one of
 * the registered processes, over their channels, and does so anew when one joins or leaves.
 *
 *   cameras 'redis://127.0.0.1:6379' front-door car-park loading-dock     in several terminals
 *
 * An assignment carries the epoch of the leader that made it. A process obeys the highest epoch
 * that it has heard of, so a leader that was paused and comes back too late moves nothing.
 */
#include <baton.h>

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>

struct service {
    struct baton *baton;
    struct baton_election *election;
    const char *const *cameras;
    int camera_count;
    char id[BATON_NAME_MAX]; /* of this process; "": not in the registry yet */
    char channel[BATON_NAME_MAX + 16];
    bool is_stale; /* what was assigned may be out of date */
};

/* ---- What a process does with its cameras ---------------------------------------------------- */

/* "EPOCH CAMERA CAMERA …", on the library's thread. */
static void on_message(struct baton *baton, const char *channel, const void *data, size_t bytes,
                       void *userdata)
{
    static uint64_t highest; /* one thread runs this */
    char text[1024];
    char *cameras;
    uint64_t epoch;
    (void)baton;
    (void)channel;
    (void)userdata;

    snprintf(text, sizeof(text), "%.*s", (int)bytes, (const char *)data);
    epoch = strtoull(text, &cameras, 10);
    if (epoch >= highest) {
        highest = epoch;
        printf("watching:%s\n", *cameras ? cameras : " nothing");
        fflush(stdout);
    }
}

/* The registry knows this process by an id, and so its channel. */
static void find_own_channel(struct service *service)
{
    struct baton_member *members;
    struct baton_error error;
    size_t count;

    if (baton_members(service->election, &members, &count, &error) != 0) {
        return; /* asked again with the next event */
    }
    for (size_t i = 0; i < count && !service->id[0]; i++) {
        if (members[i].is_self) {
            snprintf(service->id, sizeof(service->id), "%s", members[i].id);
            snprintf(service->channel, sizeof(service->channel), "worker:slave:%s", service->id);
            if (baton_subscribe(NULL, service->baton, service->channel, on_message, NULL, &error) !=
                0) {
                fprintf(stderr, "%s\n", error.message);
                service->id[0] = '\0';
            }
        }
    }
    baton_members_free(members);
}

/* ---- What the leader does -------------------------------------------------------------------- */

/* Camera number c belongs to living member number c modulo their count. */
static bool assign_to(struct service *service, const struct baton_member *member, size_t place,
                      size_t count, uint64_t epoch)
{
    char channel[BATON_NAME_MAX + 16];
    char text[1024];
    struct baton_error error;
    size_t used = (size_t)snprintf(text, sizeof(text), "%" PRIu64, epoch);

    for (size_t c = place; c < (size_t)service->camera_count && used < sizeof(text); c += count) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, " %s", service->cameras[c]);
    }
    snprintf(channel, sizeof(channel), "worker:slave:%s", member->id);
    if (used >= sizeof(text) || baton_publish(service->baton, channel, text, used, &error) != 0) {
        fprintf(stderr, "%s: %s\n", member->name,
                used >= sizeof(text) ? "too many" : error.message);
        return false;
    }
    return true;
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct baton_member *)a)->id, ((const struct baton_member *)b)->id);
}

static void assign(struct service *service)
{
    struct baton_member *members;
    struct baton_error error;
    size_t count;
    size_t living = 0;
    size_t place = 0;
    uint64_t epoch;

    if (!baton_leadership(service->election, &epoch) ||
        baton_members(service->election, &members, &count, &error) != 0) {
        return;
    }
    qsort(members, count, sizeof(members[0]), by_id);
    service->is_stale = false;
    for (size_t i = 0; i < count; i++) {
        living += members[i].is_alive; /* a group also lists members that do not answer */
    }
    for (size_t i = 0; i < count; i++) {
        if (members[i].is_alive) {
            service->is_stale |= !assign_to(service, &members[i], place++, living, epoch);
        }
    }
    baton_members_free(members);
}

/* ---- The process ----------------------------------------------------------------------------- */

static void on_event(struct baton_election *election, const struct baton_event *event,
                     void *userdata)
{
    struct service *service = userdata;
    (void)election;

    switch (event->type) {
    case BATON_EVENT_ACQUIRED:
        printf("leading, epoch %" PRIu64 "\n", event->epoch);
        service->is_stale = true;
        break;
    case BATON_EVENT_LOST:
        printf("no longer leading: %s\n", baton_loss_name(event->loss));
        break;
    case BATON_EVENT_MEMBER_JOINED:
    case BATON_EVENT_MEMBER_LEFT:
        service->is_stale = true;
        break;
    case BATON_EVENT_ERROR:
        fprintf(stderr, "%s\n", event->error.message);
        break;
    default:
        break;
    }
    fflush(stdout);
}

/* Channels forget what nobody hears: the leader says it again every second. */
static void serve(struct service *service, int signals)
{
    struct pollfd waits[] = {{.fd = baton_fd(service->baton), .events = POLLIN},
                             {.fd = signals, .events = POLLIN}};

    while (!(waits[1].revents & POLLIN)) {
        if (poll(waits, 2, 1000) == 0) {
            service->is_stale = true;
        }
        (void)baton_dispatch(service->baton);
        if (!service->id[0]) {
            find_own_channel(service);
        }
        if (service->is_stale) {
            assign(service);
        }
    }
}

int main(int argc, char **argv)
{
    struct baton_log log = {.size = sizeof(log), .fd = 2, .level = BATON_LOG_WARNING};
    struct baton_options options = {
        .size = sizeof(options), .log = &log, .announces_crashes = true};
    struct baton_campaign_options campaign = {.size = sizeof(campaign),
                                              .metadata = "{\"canProcessDetections\":true}"};
    struct service service = {.cameras = (const char *const *)argv + 2, .camera_count = argc - 2};
    struct baton_error error;
    sigset_t ends;

    if (argc < 3) {
        fprintf(stderr, "usage: %s URL CAMERA …\n", argv[0]);
        return 2;
    }
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL); /* before there are threads */
    if (baton_open(&service.baton, argv[1], &options, &error) != 0) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    if (baton_campaign(&service.election, service.baton, "cameras", &campaign, &error) != 0 ||
        baton_on(NULL, service.election, BATON_EVENT_ALL, BATON_ON_DISPATCH, on_event, &service,
                 &error) != 0) {
        fprintf(stderr, "%s\n", error.message);
        baton_close(service.baton);
        return 1;
    }
    serve(&service, signalfd(-1, &ends, SFD_CLOEXEC));
    baton_close(service.baton);
    return 0;
}
