/* baton-guardian: waits for its parent's death and certifies it.
 *
 *        WATCHING ──farewell──────────────────────────────────▶ exit, nothing sent
 *           │ ├────lease outlived, or a hang (if asked)──▶ kill ─┐
 *           │ └────crash announced──▶ kill victims, certify ─────┼─▶ wait for the death, exit
 *           ├──────all threads exiting─▶ kill victims, certify ──┤        exit
 *           └──────pidfd readable──────▶ kill victims, certify ◀─┘        exit
 *
 * Only the library starts it, with a socket to the parent, the parent's pidfd and a page that both
 * map. It links libc only. One thread sleeps in poll(2), the other waits for the parent's lock
 * (guardian/dying.h); the thread that wakes does the rest.
 */
#include "guardian/chore.h"
#include "guardian/dying.h"
#include "guardian/hang.h"
#include "guardian/protocol.h"
#include "guardian/releaser.h"
#include "guardian/sender.h"
#include "guardian/starved.h"
#include "guardian/tally.h"
#include "guardian/victims.h"

#include "base/clock.h"
#include "base/prompt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    ASIDE_MS = 50,
    LOOK_AGAIN_MS = 1,
    LOOKS_MAX = 50,
    VICTIMS_LIMIT_MS = 5000, /* after that nothing is certified: one may be alive */
    EXIT_USAGE = 2,
    MARGIN_MAX_NS = 100000000, /* twice the supervisor's margin */
    WAKE_AGAIN_NS = 5000000,
};

static const char usage[] =
    "usage: baton-guardian --inherited\n"
    "       baton-guardian --chore LIMIT_MS COMMAND NAME=VALUE\n"
    "\n"
    "Started by libbaton, with descriptors that it inherits; of no use by hand.\n"
    "It waits for its parent to die and hands the peers a death certificate.\n"
    "See baton-guardian(8).\n";

struct guardian {
    bool is_configured;
    bool is_farewell;
    bool is_crash; /* announced */
    bool is_socket_open;
    bool has_killed; /* the parent, for outliving its lease */
    struct hang hang;
    struct starved starved;
    char tally[GUARDIAN_PATH_MAX];
    bool kills_outliving;
    bool has_certified;
    int alarm_fd;
    int64_t wake_ns;      /* when the alarm is needed next */
    int64_t margin_ns;    /* between the supervisor's waking and the lease's end */
    pid_t parent;         /* its number in /proc */
    pthread_mutex_t turn; /* held by the thread that is awake */
    struct certificate certificate;
    struct victims victims;
    struct sender sender;
    struct releaser releaser;
    struct guardian_shared *shared; /* only its lock is written to */
};

static void add_peer(struct sender *sender, const struct guardian_message *message)
{
    if (sender->count < GUARDIAN_PEERS_MAX &&
        message->peer.address_bytes <= sizeof(message->peer.address)) {
        sender->peers[sender->count++] = (struct sender_peer){
            .node = message->peer.node,
            .address_bytes = message->peer.address_bytes,
            .address = message->peer.address,
            .fd = -1,
            .spare = -1,
        };
    }
}

static void take_message(struct guardian *guardian, const struct guardian_message *message)
{
    switch ((enum guardian_message_type)message->type) {
    case GUARDIAN_CONFIGURE:
        guardian->certificate = message->configure.certificate;
        guardian->kills_outliving = message->configure.kills_outliving;
        hang_init(&guardian->hang, message->configure.hang);
        memcpy(guardian->tally, message->configure.tally, sizeof(guardian->tally) - 1);
        guardian->is_configured = true;
        break;
    case GUARDIAN_PEERS_CLEAR:
        sender_clear(&guardian->sender);
        break;
    case GUARDIAN_PEER:
        add_peer(&guardian->sender, message);
        break;
    case GUARDIAN_VICTIMS:
        if (guardian->victims.supervisor > 0) {
            (void)close(guardian->victims.supervisor);
            (void)close(guardian->victims.process);
        }
        guardian->victims = message->victims;
        guardian->victims.cgroup[VICTIMS_PATH_MAX - 1] = '\0';
        guardian->victims.marker[VICTIMS_MARKER_MAX - 1] = '\0';
        break;
    case GUARDIAN_FAREWELL:
        guardian->is_farewell = true;
        break;
    case GUARDIAN_CRASH:
        guardian->is_crash = true;
        break;
    case GUARDIAN_LEASE: /* serves only to end the sleep */
    case GUARDIAN_HELLO:
        break;
    }
}

static void connect_early(struct guardian *guardian)
{
    sender_connect(&guardian->sender, atomic_load(&guardian->shared->heir));
    releaser_connect(&guardian->releaser);
}

/* Reads all waiting messages. The socket's end without a farewell proves nothing, since the parent
 * may be alive; but the connections are worth having from now on. If the parent died without
 * reading our HELLO, the socket reports ECONNRESET, once, before its last messages. */
static void drain_socket(struct guardian *guardian)
{
    while (guardian->is_socket_open && !guardian->is_farewell) {
        struct guardian_message message;
        ssize_t bytes = protocol_receive(GUARDIAN_FD_SOCKET, &message);
        if (bytes == (ssize_t)sizeof(message) && message.version == GUARDIAN_VERSION) {
            take_message(guardian, &message);
        } else if (bytes < 0 && (errno == EINTR || errno == ECONNRESET)) {
            continue;
        } else if (bytes < 0 && errno == EAGAIN) {
            return;
        } else if (bytes <= 0) {
            guardian->is_socket_open = false;
            connect_early(guardian);
        }
    }
}

/* Our exit is work for the kernel; the peers need the processor more at this moment. */
static void stand_aside(void)
{
    (void)poll(NULL, 0, ASIDE_MS);
}

/* Ends the victims first, so that the certificate is true when it is sent. */
static void certify(struct guardian *guardian)
{
    if (!guardian->is_configured) {
        return;
    }
    if (!victims_are_none(&guardian->victims)) {
        connect_early(guardian); /* connects while the victims die */
    }
    if (victims_end(&guardian->victims, VICTIMS_LIMIT_MS)) {
        guardian->certificate.heir = atomic_load(&guardian->shared->heir);
        sender_deliver(&guardian->sender, &guardian->certificate);
        releaser_deliver(&guardian->releaser);
        stand_aside();
    }
    victims_remove_cgroup(
        guardian->victims.cgroup); /* the supervisor does so unless it was killed */
}

static void wake_at(struct guardian *guardian, int64_t at_ns)
{
    guardian->wake_ns = at_ns < guardian->wake_ns ? at_ns : guardian->wake_ns;
}

static void set_alarm(const struct guardian *guardian)
{
    int64_t at_ns = guardian->wake_ns;
    struct itimerspec alarm = {
        .it_value = {.tv_sec = at_ns / 1000000000, .tv_nsec = at_ns % 1000000000}};

    (void)timerfd_settime(guardian->alarm_fd, TFD_TIMER_ABSTIME, &alarm, NULL);
}

/* While a lease ends that was not renewed, the supervisor has to be awake. It may be stopped at any
 * moment of that time, so it is woken again and again. */
static void keep_supervisor_awake(struct guardian *guardian, int64_t end_ns)
{
    int64_t now_ns = clock_now().ns;
    int64_t again_ns = now_ns + WAKE_AGAIN_NS;

    victims_wake_supervisor(&guardian->victims);
    wake_at(guardian, now_ns < end_ns && end_ns < again_ns ? end_ns : again_ns);
}

/* At the end of the lease a parent that outlives it is killed where that is wanted; shortly before,
 * and until shortly after, the supervisor is kept awake. Else the alarm is set to the next of
 * these: mostly one wake-up for each lease, however often it is renewed. */
static void guard_lease(struct guardian *guardian)
{
    int64_t end_ns = atomic_load(&guardian->shared->end_ns);
    int64_t left_ns = end_ns - clock_now().ns;
    int64_t fifth_ns = left_ns / 5 < MARGIN_MAX_NS ? left_ns / 5 : MARGIN_MAX_NS;

    if ((!guardian->kills_outliving && guardian->victims.process <= 0) || guardian->has_killed ||
        end_ns <= 0) {
        return;
    }
    if (fifth_ns > guardian->margin_ns) {
        guardian->margin_ns = fifth_ns;
    }
    if (left_ns > guardian->margin_ns) {
        wake_at(guardian, end_ns - guardian->margin_ns);
    } else if (left_ns > 0 && guardian->victims.process <= 0) {
        wake_at(guardian, end_ns);
    } else if (left_ns > -guardian->margin_ns) {
        keep_supervisor_awake(guardian, end_ns);
    }
    if (left_ns <= 0 && guardian->kills_outliving) {
        guardian->has_killed = true;
        (void)pidfd_send_signal(GUARDIAN_FD_PARENT, SIGKILL, NULL,
                                0); /* fails only if it is dead */
    }
}

static void certify_once(struct guardian *guardian)
{
    if (!guardian->has_certified) {
        guardian->has_certified = true;
        certify(guardian);
        if (guardian->hang.has_killed) { /* last: the disk may be what the parent hung at */
            tally_count(guardian->tally);
        }
    }
}

/* Asks only in the second half of a silence, so that a healthy leader costs nothing. */
static bool looks_starved(struct guardian *guardian, instant beat)
{
    bool is_silent = guardian->hang.bound.ns > 0 && guardian->parent > 0 &&
                     instant_since(clock_now(), beat).ns > guardian->hang.bound.ns / 2;

    return is_silent && starved_look(&guardian->starved, guardian->parent,
                                     (pid_t)atomic_load(&guardian->shared->loop_thread));
}

/* Reads the beat before the clock, so that a stop of this process between the two makes the look a
 * late one. */
static void guard_against_hang(struct guardian *guardian, bool is_dead)
{
    struct hang_look look = {.is_dead = is_dead};
    enum hang_verdict verdict;

    look.lease.ns = guardian->has_certified ? 0 : atomic_load(&guardian->shared->end_ns);
    look.beat.ns = atomic_load(&guardian->shared->beat_ns);
    look.is_starved = looks_starved(guardian, look.beat);
    look.now = clock_now();
    verdict = hang_take(&guardian->hang, &look);
    if (verdict == HANG_CERTIFY) {
        certify_once(guardian);
    } else if (verdict == HANG_KILL) {
        connect_early(guardian);
        (void)pidfd_send_signal(GUARDIAN_FD_PARENT, SIGKILL, NULL,
                                0); /* fails only if it is dead */
    }
    if (guardian->hang.next.ns != INSTANT_NEVER.ns) {
        wake_at(guardian, guardian->hang.next.ns);
    }
}

/* Sleeps until the parent dies, sends a message, or should have renewed its lease. True: the parent
 * is dead. */
static bool sleep_and_look(struct guardian *guardian)
{
    struct pollfd polls[3] = {
        {.fd = GUARDIAN_FD_PARENT, .events = POLLIN},
        {.fd = guardian->is_socket_open ? GUARDIAN_FD_SOCKET : -1, .events = POLLIN},
        {.fd = guardian->alarm_fd, .events = POLLIN},
    };
    uint64_t expirations;

    (void)pthread_mutex_unlock(&guardian->turn);
    (void)poll(polls, 3, -1);
    (void)pthread_mutex_lock(&guardian->turn);
    if (polls[2].revents != 0) {
        (void)!read(guardian->alarm_fd, &expirations,
                    sizeof(expirations)); /* else poll() returns at once */
    }
    drain_socket(guardian);
    return polls[0].revents != 0;
}

static void watch(struct guardian *guardian)
{
    for (;;) {
        bool is_dead = sleep_and_look(guardian);
        if (guardian->is_farewell) {
            return;
        }
        guardian->wake_ns = INT64_MAX;
        guard_against_hang(guardian, is_dead);
        if (is_dead) {
            return;
        }
        if (guardian->is_crash) {
            certify_once(guardian);
        }
        if (!guardian->has_certified) {
            guard_lease(guardian);
        }
        if (guardian->wake_ns != INT64_MAX) {
            set_alarm(guardian);
        }
    }
}

/* The parent's other threads may not be exiting yet: looks again for a while, then leaves the rest
 * to the pidfd. */
static void *watch_for_dying(void *userdata)
{
    struct guardian *guardian = userdata;

    for (int looks = dying_wait(&guardian->shared->life) ? LOOKS_MAX : 0; looks > 0; looks--) {
        (void)pthread_mutex_lock(&guardian->turn);
        if (dying_is_certain(guardian->parent)) {
            drain_socket(guardian);
            if (!guardian->is_farewell) {
                certify_once(guardian);
            }
            _exit(EXIT_SUCCESS);
        }
        connect_early(guardian);
        (void)pthread_mutex_unlock(&guardian->turn);
        (void)poll(NULL, 0, LOOK_AGAIN_MS);
    }
    return NULL;
}

/* A failure is ignored: the pidfd reports the death too, only later. */
static void begin_watching_for_dying(struct guardian *guardian)
{
    pthread_t thread;

    guardian->parent = dying_name(GUARDIAN_FD_PARENT);
    if (guardian->parent != 0 && pthread_create(&thread, NULL, watch_for_dying, guardian) == 0) {
        (void)pthread_detach(thread);
    }
}

/* Detaches from the parent's terminal, session and descriptors. The first process ends at once and
 * the parent waits for it, so that a program that waits for any child never meets the guardian. */
static bool detach(void)
{
    static const int ignored[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                  SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM};
    pid_t child = fork();
    if (child != 0) {
        _exit(child < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
    }
    (void)setsid(); /* cannot fail after a fork */
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++) {
        (void)signal(ignored[i], SIG_IGN);
    }
    (void)close_range(GUARDIAN_FD_SHARED + 1, ~0U, 0);
    return chdir("/") == 0;
}

/* Measures that may fail without harm. */
static void harden(void)
{
    int null = open("/dev/null", O_RDWR);
    int score;

    for (int fd = 0; null >= 0 && fd <= 2; fd++) {
        (void)dup2(null, fd);
    }
    if (null > GUARDIAN_FD_SHARED) {
        (void)close(null);
    }
    (void)prctl(PR_SET_NAME, "baton-guardian");
    (void)prctl(PR_SET_DUMPABLE, 0); /* other processes cannot read the secret */
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (score >= 0) {
        (void)!write(score, "-900", 4); /* fails without privilege */
        (void)close(score);
    }
}

static bool map_shared(struct guardian *guardian)
{
    struct stat about;
    void *memory;

    if (fstat(GUARDIAN_FD_SHARED, &about) != 0 ||
        about.st_size < (off_t)sizeof(*guardian->shared)) {
        return false;
    }
    memory = mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED,
                  GUARDIAN_FD_SHARED, 0);
    if (memory == MAP_FAILED) {
        return false;
    }
    guardian->shared = memory;
    releaser_init(&guardian->releaser);
    if ((size_t)about.st_size >= sizeof(*guardian->shared) + commands_bytes(0)) {
        guardian->releaser.commands = (const struct commands *)(guardian->shared + 1);
        guardian->releaser.slots_max =
            (uint32_t)(((size_t)about.st_size - sizeof(*guardian->shared) - commands_bytes(0)) /
                       sizeof(struct commands_slot));
    }
    return true;
}

/* Again while the kernel has no memory for it: without it the parent never learns who this is. It
 * fails if the parent is dead: its pidfd shows that. */
static void greet(void)
{
    struct guardian_message hello = {
        .version = GUARDIAN_VERSION, .type = GUARDIAN_HELLO, .pid = getpid()};

    while (send(GUARDIAN_FD_SOCKET, &hello, sizeof(hello), MSG_NOSIGNAL) < 0 &&
           (errno == ENOBUFS || errno == ENOMEM) &&
           poll(&(struct pollfd){.fd = GUARDIAN_FD_PARENT, .events = POLLIN}, 1, LOOK_AGAIN_MS) ==
               0) {
    }
}

int main(int argc, char **argv)
{
    static struct guardian guardian = {.turn = PTHREAD_MUTEX_INITIALIZER};

    if (argc == 5 && strcmp(argv[1], "--chore") == 0) {
        return putenv(argv[4]) == 0 ? chore_main(argv[2], argv[3]) : EXIT_FAILURE;
    }
    if (argc != 2 || strcmp(argv[1], "--inherited") != 0) {
        bool is_help = argc == 2 && strcmp(argv[1], "--help") == 0;
        (void)fputs(usage, is_help ? stdout : stderr);
        return is_help ? EXIT_SUCCESS : EXIT_USAGE;
    }
    if (!map_shared(&guardian)) {
        return EXIT_USAGE; /* not started by the library */
    }
    if (!detach()) {
        return EXIT_FAILURE;
    }
    (void)pthread_mutex_lock(&guardian.turn);
    thread_be_prompt();
    begin_watching_for_dying(&guardian); /* before harden(): /proc hides more from the undumpable */
    harden();
    guardian.alarm_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    guardian.is_socket_open = true;
    greet();
    watch(&guardian);
    return EXIT_SUCCESS;
}
