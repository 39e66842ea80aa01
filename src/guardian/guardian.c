#include "guardian/guardian.h"

#include "guardian/fatal.h"
#include "guardian/lookup.h"
#include "guardian/page.h"
#include "guardian/protocol.h"
#include "guardian/spawn.h"

#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    RESTART_MIN_MS = 100,
    RESTART_DOUBLINGS = 7, /* up to 12.8 s */
    STEADY_S = 10,         /* a helper that lived this long resets the back-off */
    HANG_MIN_MS = 10,
    PULSES = 8, /* beats within the time after which silence is a hang */
};

#define TLS_IMAGE "-tls" /* suffix of the program's name */

/* One running guardian process. Lives until its poll handle is closed. */
struct helper {
    uv_poll_t poll;
    struct guardian *guardian;
    int fd;
    pid_t first; /* the short-lived child; 0: already waited for */
    pid_t pid;   /* 0: no HELLO yet */
    int pidfd;   /* of `pid`; -1: no HELLO yet */
    instant since;
};

struct guardian {
    struct guardian_options options;
    char program[PATH_MAX];
    char tally[GUARDIAN_PATH_MAX]; /* absolute, since the guardian has another folder; "": none */
    int pidfd;
    struct page page;
    struct helper *helper; /* NULL: none runs */
    uv_timer_t restart;
    uv_timer_t pulse; /* the loop's beat; idle without options.hang */
    unsigned restarts;
    struct guardian_message peers[GUARDIAN_PEERS_MAX]; /* address_bytes 0: not resolved */
    size_t peer_count;
    struct lookup *lookups; /* of the peers that have a name */
    struct victims victims;
    int fatal_slot; /* -1: not armed */
    struct guardian_message crash;
    unsigned open; /* handles and lookups that will still call back */
    bool is_stopping;
    void (*closed)(void *userdata);
    void *closed_userdata;
};

static void warn(struct guardian *guardian, const struct baton_error *error)
{
    if (guardian->options.on_warning != NULL && !guardian->is_stopping) {
        guardian->options.on_warning(guardian->options.userdata, error);
    }
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void destroy(struct guardian *guardian)
{
    page_free(&guardian->page);
    if (guardian->pidfd >= 0) {
        (void)close(guardian->pidfd);
    }
    explicit_bzero(&guardian->options.certificate, sizeof(guardian->options.certificate));
    free(guardian);
}

static void release(struct guardian *guardian)
{
    void (*closed)(void *userdata) = guardian->closed;
    void *userdata = guardian->closed_userdata;

    if (--guardian->open > 0) {
        return;
    }
    destroy(guardian);
    if (closed != NULL) {
        closed(userdata);
    }
}

static void wait_for_first(struct helper *helper)
{
    if (helper->first != 0) {
        /* ECHILD is fine: the program may have waited for any child. */
        while (waitpid(helper->first, NULL, 0) < 0 && errno == EINTR) {
        }
        helper->first = 0;
    }
}

static void helper_closed(uv_handle_t *handle)
{
    struct helper *helper = handle->data;
    struct guardian *guardian = helper->guardian;
    (void)close(helper->fd);
    if (helper->pidfd >= 0) {
        /* It is our child if this process is init or a subreaper. */
        (void)waitid(P_PIDFD, (id_t)helper->pidfd, &(siginfo_t){0}, WEXITED | WNOHANG);
        (void)close(helper->pidfd);
    }
    free(helper);
    release(guardian);
}

static void drop_helper(struct guardian *guardian)
{
    struct helper *helper = guardian->helper;
    if (helper != NULL) {
        guardian->helper = NULL;
        if (guardian->fatal_slot >= 0) {
            fatal_set_fd(guardian->fatal_slot, -1);
        }
        wait_for_first(helper);
        uv_close((uv_handle_t *)&helper->poll, helper_closed);
    }
}

/* ---- Messages -------------------------------------------------------------------------------- */

static void lose_helper(struct guardian *guardian, const char *reason);

static void send_message(struct guardian *guardian, const struct guardian_message *message)
{
    if (guardian->helper == NULL) {
        return; /* send_all() follows when one runs */
    }
    if (!protocol_send(guardian->helper->fd, message)) {
        lose_helper(guardian, errno == EAGAIN ? "does not listen" : "is gone");
    }
}

static void send_type(struct guardian *guardian, enum guardian_message_type type)
{
    struct guardian_message message = {.version = GUARDIAN_VERSION, .type = (uint16_t)type};
    send_message(guardian, &message);
}

static void send_peers(struct guardian *guardian)
{
    send_type(guardian, GUARDIAN_PEERS_CLEAR);
    for (size_t i = 0; i < guardian->peer_count; i++) {
        if (guardian->peers[i].peer.address_bytes > 0) {
            send_message(guardian, &guardian->peers[i]);
        }
    }
}

static void send_victims(struct guardian *guardian)
{
    struct guardian_message message = {.version = GUARDIAN_VERSION, .type = GUARDIAN_VICTIMS};
    message.victims = guardian->victims;
    send_message(guardian, &message);
}

static void send_all(struct guardian *guardian)
{
    struct guardian_message message = {.version = GUARDIAN_VERSION, .type = GUARDIAN_CONFIGURE};
    message.configure.certificate = guardian->options.certificate;
    message.configure.kills_outliving = guardian->options.kills_outliving;
    message.configure.hang = guardian->options.hang;
    memcpy(message.configure.tally, guardian->tally, sizeof(message.configure.tally));
    send_victims(guardian); /* first: no certificate while they live */
    send_peers(guardian);
    send_message(guardian, &message);
    explicit_bzero(&message, sizeof(message));
}

/* ---- Life of the process --------------------------------------------------------------------- */

static void on_readable(uv_poll_t *handle, int status, int events)
{
    struct helper *helper = handle->data;
    struct guardian_message message;
    ssize_t bytes = recv(helper->fd, &message, sizeof(message), MSG_DONTWAIT);

    (void)status; /* recv() reports errors */
    (void)events;
    if (bytes == (ssize_t)sizeof(message) && message.version == GUARDIAN_VERSION &&
        message.type == GUARDIAN_HELLO) {
        helper->pid = message.pid;
        helper->pidfd = helper->pidfd >= 0 ? helper->pidfd : pidfd_open(message.pid, 0);
        wait_for_first(helper);
    } else if (bytes == 0 || (bytes < 0 && errno != EAGAIN && errno != EINTR)) {
        lose_helper(helper->guardian, "has ended");
    } else if (bytes > 0) {
        lose_helper(helper->guardian, "is of another version");
    }
}

static int make_helper(struct helper **ret, struct guardian *guardian, int ours,
                       struct baton_error *reterr)
{
    struct helper *helper = calloc(1, sizeof(*helper));
    if (helper == NULL) {
        return error_set(reterr, BATON_ENOMEM, "guardian: no memory for its connection");
    }
    if (uv_poll_init(guardian->options.loop, &helper->poll, ours) != 0) {
        free(helper);
        return error_set(reterr, BATON_EIO, "guardian: its socket cannot be watched");
    }
    helper->poll.data = helper;
    helper->guardian = guardian;
    helper->fd = ours;
    helper->pidfd = -1;
    helper->since = clock_now();
    guardian->open++;
    *ret = helper;
    return 0;
}

static int launch(struct guardian *guardian, struct baton_error *reterr)
{
    struct spawn_descriptors theirs = {.parent = guardian->pidfd, .shared = guardian->page.fd};
    struct helper *helper = NULL;
    int pair[2], code;
    pid_t first;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return error_set(reterr, BATON_EIO, "guardian: no socket pair: %s", strerror(errno));
    }
    theirs.socket = pair[1];
    code = make_helper(&helper, guardian, pair[0], reterr);
    if (code != 0) {
        (void)close(pair[0]);
        (void)close(pair[1]);
        return code;
    }
    code = guardian_spawn(&first, guardian->program, &theirs, reterr);
    (void)close(pair[1]);
    if (code != 0) {
        uv_close((uv_handle_t *)&helper->poll, helper_closed);
        return code;
    }
    helper->first = first;
    guardian->helper = helper;
    uv_unref((uv_handle_t *)&helper->poll);
    (void)uv_poll_start(&helper->poll, UV_READABLE | UV_DISCONNECT,
                        on_readable); /* cannot fail: valid handle */
    if (guardian->fatal_slot >= 0) {
        fatal_set_fd(guardian->fatal_slot, helper->fd);
    }
    send_all(guardian);
    return 0;
}

static void on_restart(uv_timer_t *timer);

static void restart_later(struct guardian *guardian)
{
    unsigned doublings =
        guardian->restarts < RESTART_DOUBLINGS ? guardian->restarts : RESTART_DOUBLINGS;
    guardian->restarts++;
    (void)uv_timer_start(&guardian->restart, on_restart, (uint64_t)RESTART_MIN_MS << doublings, 0);
}

static void on_restart(uv_timer_t *timer)
{
    struct guardian *guardian = timer->data;
    struct baton_error error;
    if (guardian->helper == NULL && launch(guardian, &error) != 0) {
        warn(guardian, &error);
        restart_later(guardian);
    }
}

/* The helper is useless now. A hung one is killed, so that there are never two. */
static void lose_helper(struct guardian *guardian, const char *reason)
{
    struct helper *helper = guardian->helper;
    struct baton_error error;

    if (helper == NULL || guardian->is_stopping) {
        return;
    }
    if (instant_since(clock_now(), helper->since).ns > SPAN_S(STEADY_S).ns) {
        guardian->restarts = 0;
    }
    (void)error_set(&error, BATON_EUNAVAILABLE,
                    "guardian (process %d) %s; leadership is unaffected, it is started again",
                    (int)helper->pid, reason);
    if (helper->pidfd >= 0) {
        (void)pidfd_send_signal(helper->pidfd, SIGKILL, NULL, 0); /* mostly dead already */
    }
    drop_helper(guardian);
    restart_later(guardian);
    warn(guardian, &error);
}

/* ---- Hangs ----------------------------------------------------------------------------------- */

int guardian_check_hang(span hang, span lease, bool has_guardian, struct baton_error *reterr)
{
    double hang_ms = (double)hang.ns / 1e6;

    if (hang.ns == 0) {
        return BATON_OK;
    }
    if (!has_guardian) {
        return error_set(reterr, BATON_EINVAL,
                         "hang: only a guardian notices a hang, and there is none: leave out "
                         "guardian=off or proofs=none");
    }
    if (hang.ns < SPAN_MS(HANG_MIN_MS).ns) {
        return error_set(reterr, BATON_EINVAL,
                         "hang: %g ms is less than %d ms, within which a loop must be able to run",
                         hang_ms, HANG_MIN_MS);
    }
    if (hang.ns > lease.ns) {
        return error_set(
            reterr, BATON_EINVAL,
            "hang <= lease fails: %.0f ms > %.0f ms; a hang beyond the lease costs the "
            "lease",
            hang_ms, (double)lease.ns / 1e6);
    }
    return BATON_OK;
}

/* A path that is too long means no tally: the bound does not grow then. */
static void place_tally(struct guardian *guardian)
{
    const char *wanted = guardian->options.tally;
    char folder[GUARDIAN_PATH_MAX] = "";
    bool is_absolute = wanted != NULL && wanted[0] == '/';

    if (wanted != NULL && (is_absolute || getcwd(folder, sizeof(folder)) != NULL)) {
        int length = snprintf(guardian->tally, sizeof(guardian->tally), "%s%s%s", folder,
                              is_absolute ? "" : "/", wanted);
        if (length >= (int)sizeof(guardian->tally)) {
            guardian->tally[0] = '\0';
        }
    }
}

static void on_pulse(uv_timer_t *timer)
{
    struct guardian *guardian = timer->data;
    int64_t beat_ns = clock_now().ns;
    int64_t alive_ns =
        guardian->options.alive_ns != NULL ? atomic_load(guardian->options.alive_ns) : 0;

    if (alive_ns > 0 && alive_ns < beat_ns) {
        beat_ns = alive_ns;
    }
    atomic_store(&guardian->page.shared->beat_ns, beat_ns);
}

static void begin_pulse(struct guardian *guardian)
{
    int64_t pulse_ms = guardian->options.hang.ns / PULSES / 1000000;

    (void)uv_timer_init(guardian->options.loop, &guardian->pulse); /* cannot fail */
    guardian->pulse.data = guardian;
    uv_unref((uv_handle_t *)&guardian->pulse);
    guardian->open++;
    if (guardian->options.hang.ns > 0) {
        pulse_ms = pulse_ms > 0 ? pulse_ms : 1;
        (void)uv_timer_start(&guardian->pulse, on_pulse, 0, (uint64_t)pulse_ms);
    }
}

/* ---- Start and stop -------------------------------------------------------------------------- */

static int share(struct guardian *guardian, struct baton_error *reterr)
{
    guardian->pidfd = pidfd_open(getpid(), 0);
    if (guardian->pidfd < 0) {
        return error_set(reterr, BATON_EIO, "guardian: no pidfd of this process: %s",
                         strerror(errno));
    }
    return page_make(&guardian->page, guardian->options.release_slots, reterr);
}

static int choose_image(struct guardian *guardian, struct baton_error *reterr)
{
    size_t bytes = strlen(guardian->program);

    if (bytes + sizeof(TLS_IMAGE) > sizeof(guardian->program)) {
        return error_set(reterr, BATON_ETOOBIG, "guardian %s: the path is too long",
                         guardian->program);
    }
    memcpy(guardian->program + bytes, TLS_IMAGE, sizeof(TLS_IMAGE));
    if (access(guardian->program, X_OK) != 0) {
        return error_set(reterr, BATON_ENOENT, "guardian %s: %s", guardian->program,
                         strerror(errno));
    }
    return 0;
}

static int choose_program(struct guardian *guardian, struct baton_error *reterr)
{
    const char *wanted = guardian->options.program;
    if (wanted != NULL) {
        int length = snprintf(guardian->program, sizeof(guardian->program), "%s", wanted);
        if (length < 0 || (size_t)length >= sizeof(guardian->program)) {
            return error_set(reterr, BATON_ETOOBIG, "guardian %s: the path is too long", wanted);
        }
        return 0;
    }
    if (!guardian_find(guardian->program, sizeof(guardian->program))) {
        return error_set(reterr, BATON_ENOENT,
                         "baton-guardian: neither beside this program nor at %s; install it, name "
                         "its path, or switch the guardian off",
                         guardian->program);
    }
    return guardian->options.speaks_tls ? choose_image(guardian, reterr) : 0;
}

int guardian_start(struct guardian **ret, const struct guardian_options *options,
                   struct baton_error *reterr)
{
    struct guardian *guardian = calloc(1, sizeof(*guardian));
    int code;

    if (guardian == NULL) {
        return error_set(reterr, BATON_ENOMEM, "guardian: out of memory");
    }
    guardian->options = *options;
    guardian->pidfd = guardian->page.fd = guardian->fatal_slot = -1;
    place_tally(guardian);
    code = choose_program(guardian, reterr);
    code = code != 0 ? code : share(guardian, reterr);
    if (code != 0) {
        destroy(guardian);
        return code;
    }
    (void)uv_timer_init(options->loop, &guardian->restart); /* cannot fail */
    guardian->restart.data = guardian;
    uv_unref((uv_handle_t *)&guardian->restart);
    guardian->open++;
    begin_pulse(guardian);
    code = launch(guardian, reterr);
    if (code != 0) {
        guardian_stop(guardian, NULL, NULL);
        return code;
    }
    *ret = guardian;
    return 0;
}

static void end_lookups(struct guardian *guardian)
{
    while (guardian->lookups != NULL) {
        struct lookup *lookup = guardian->lookups;
        guardian->lookups = lookup->next;
        lookup_end(lookup);
    }
}

static void timer_closed(uv_handle_t *handle)
{
    release(handle->data);
}

void guardian_stop(struct guardian *guardian, void (*closed)(void *userdata), void *userdata)
{
    if (guardian == NULL) {
        return;
    }
    guardian->is_stopping = true;
    guardian->closed = closed;
    guardian->closed_userdata = userdata;
    if (guardian->fatal_slot >= 0) {
        fatal_remove(guardian->fatal_slot);
        guardian->fatal_slot = -1;
    }
    send_type(guardian, GUARDIAN_FAREWELL);
    drop_helper(guardian);
    end_lookups(guardian);
    uv_close((uv_handle_t *)&guardian->restart, timer_closed);
    uv_close((uv_handle_t *)&guardian->pulse, timer_closed);
}

/* ---- What it must know ----------------------------------------------------------------------- */

static void on_found(struct lookup *lookup, const struct sockaddr_storage *address, socklen_t bytes)
{
    struct guardian *guardian = lookup->userdata;
    struct guardian_message *peer = &guardian->peers[lookup->place];

    peer->peer.address = *address;
    peer->peer.address_bytes = bytes;
    send_peers(guardian);
}

static void on_not_found(struct lookup *lookup, const char *fault)
{
    struct baton_error error;

    (void)error_set(
        &error, BATON_ENOENT,
        "guardian: the host \"%s\" of a peer: %s; it is looked up again, and until it is "
        "found that peer gets no certificate of this process's death",
        lookup->host, fault);
    warn(lookup->userdata, &error);
}

static void on_lookup_ended(struct lookup *lookup)
{
    struct guardian *guardian = lookup->userdata;

    free(lookup);
    release(guardian);
}

static void look_up(struct guardian *guardian, size_t place, const char *host, int port)
{
    struct lookup *lookup = calloc(1, sizeof(*lookup));
    if (lookup == NULL) {
        return; /* the peer gets no certificate and waits for the lease's end */
    }
    *lookup = (struct lookup){.loop = guardian->options.loop,
                              .place = place,
                              .port = port,
                              .found = on_found,
                              .failed = on_not_found,
                              .ended = on_lookup_ended,
                              .userdata = guardian,
                              .next = guardian->lookups};
    (void)snprintf(lookup->host, sizeof(lookup->host), "%s", host);
    guardian->lookups = lookup;
    guardian->open++;
    lookup_begin(lookup);
}

void guardian_set_peers(struct guardian *guardian, const struct guardian_peer *peers, size_t count)
{
    end_lookups(guardian);
    guardian->peer_count = count < GUARDIAN_PEERS_MAX ? count : GUARDIAN_PEERS_MAX;
    for (size_t i = 0; i < guardian->peer_count; i++) {
        struct guardian_message *peer = &guardian->peers[i];
        char host[RESOLVE_HOST_MAX];
        struct baton_error error;
        int port;

        *peer = (struct guardian_message){.version = GUARDIAN_VERSION, .type = GUARDIAN_PEER};
        peer->peer.node = peers[i].node;
        if (resolve_split(peers[i].address, host, &port, &error) != 0) {
            warn(guardian, &error);
        } else if (!resolve_numeric(host, port, &peer->peer.address, &peer->peer.address_bytes)) {
            peer->peer.address_bytes = 0;
            look_up(guardian, i, host, port);
        }
    }
    send_peers(guardian);
}

void guardian_set_heir(struct guardian *guardian, uint64_t node)
{
    atomic_store(&guardian->page.shared->heir, node);
}

void guardian_set_victims(struct guardian *guardian, const struct victims *victims)
{
    guardian->victims = victims != NULL ? *victims : (struct victims){0};
    send_victims(guardian);
}

void guardian_publish(struct guardian *guardian, instant end)
{
    int64_t end_ns = end.ns > 0 ? end.ns : 0;
    int64_t old_ns = atomic_exchange(&guardian->page.shared->end_ns, end_ns);
    /* The guardian sleeps until the old end: it must be woken only if there was none, or if the new
     * end is earlier. */
    if ((guardian->options.kills_outliving || guardian->options.hang.ns > 0 ||
         guardian->victims.process > 0) &&
        end_ns > 0 && (old_ns == 0 || end_ns < old_ns)) {
        send_type(guardian, GUARDIAN_LEASE);
    }
}

/* ---- Commands for servers
 * ------------------------------------------------------------------------------ */

int guardian_set_commands(struct guardian *guardian, const struct guardian_commands *commands,
                          struct baton_error *reterr)
{
    return page_set_commands(&guardian->page, commands, reterr);
}

int guardian_open_slot(struct guardian *guardian, const char *name)
{
    return page_open_slot(&guardian->page, name);
}

void guardian_close_slot(struct guardian *guardian, int slot)
{
    page_close_slot(&guardian->page, slot);
}

void guardian_set_epoch(struct guardian *guardian, int slot, uint64_t epoch)
{
    page_set_epoch(&guardian->page, slot, epoch);
}

/* ---- Fatal signals --------------------------------------------------------------------------- */

int guardian_arm(struct guardian *guardian, void (*void_lease)(void *lease), void *lease,
                 struct baton_error *reterr)
{
    struct fatal_entry entry = {.void_lease = void_lease,
                                .lease = lease,
                                .fd = guardian->helper != NULL ? guardian->helper->fd : -1,
                                .datagram = &guardian->crash,
                                .bytes = sizeof(guardian->crash)};
    int slot;

    guardian->crash =
        (struct guardian_message){.version = GUARDIAN_VERSION, .type = GUARDIAN_CRASH};
    slot = fatal_add(&entry);
    if (slot < 0) {
        return error_set(reterr, slot,
                         "more than %d elections in one process guard against fatal "
                         "signals",
                         (int)FATAL_ENTRIES_MAX);
    }
    guardian->fatal_slot = slot;
    return 0;
}

pid_t guardian_pid(const struct guardian *guardian)
{
    return guardian->helper != NULL ? guardian->helper->pid : 0;
}
