#include "cli/supervisor.h"

#include "base/clock.h"
#include "cli/children.h"
#include "cli/foreman.h"
#include "cli/record.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utlist.h>

enum {
    AGAIN_MS = 1,     /* interval between two checks for descendants, if no child ends before */
    PATIENCE_MS = 10, /* with foremen that are ending their commands */
    STRAYS_MS = 100,  /* limit of the search for what a service started */
    NEWS_MAX = 2,     /* of one command: it was started, it has ended */
};

/* From SIGKILL to the end of the lease: the kernel needs a moment to end a process. A tenth of the
 * lease, and 50 ms at most. */
#define MARGIN_MAX SPAN_MS(50)

struct command {
    uint32_t number;
    pid_t foreman; /* 0: none, or its exit status was taken */
    bool has_ended;
    struct news news[NEWS_MAX]; /* for baton run */
    int news_count, news_sent;
    struct command *prev, *next;
};

struct supervision {
    const struct supervisor *config;
    struct command *commands; /* until baton run knows of their end */
    bool is_ending;           /* all descendants are being killed */
    bool is_overdue;          /* because the lease was about to end */
    bool is_asked;            /* the foremen know, and have until kill_at */
    instant kill_at;
    bool is_last;      /* no other command will be started */
    int news;          /* of the foremen */
    int foremens_news; /* the other end of that socket pair */
    int children;      /* signalfd of SIGCHLD */
    int alarm;         /* timerfd for the lease */
    span margin;       /* between the kill and the lease's end */
};

/* ---- News ------------------------------------------------------------------------------------ */

static struct command *find(const struct supervision *all, uint32_t number)
{
    struct command *command;

    DL_SEARCH_SCALAR(all->commands, command, number, number);
    return command;
}

static void note(struct command *command, enum news_type type, int value, bool is_overdue)
{
    if (command->news_count < NEWS_MAX) {
        command->news[command->news_count++] = (struct news){
            .type = type, .command = command->number, .value = value, .is_overdue = is_overdue};
    }
    command->has_ended |= type != NEWS_STARTED;
}

/* It has ended, and its foreman has not reported that. */
static void note_killed(struct command *command, bool is_overdue)
{
    if (command->news_count == 0) {
        note(command, NEWS_STARTED, 0, is_overdue); /* baton run waits for it */
    }
    note(command, NEWS_ENDED, SIGKILL, is_overdue);
}

static void hear_foremen(struct supervision *all)
{
    struct news news;

    while (recv(all->news, &news, sizeof(news), MSG_DONTWAIT) == (ssize_t)sizeof(news)) {
        struct command *command = find(all, news.command);
        if (command) {
            note(command, news.type, news.value,
                 news.is_overdue || (news.type == NEWS_ENDED && all->is_overdue));
        }
    }
}

/* False: baton run does not read, and the socket is full, or the kernel has no memory for the news.
 * This process never waits for it, since the lease goes on. */
static bool send_news(const struct supervision *all, struct command *command)
{
    while (command->news_sent < command->news_count) {
        const struct news *news = &command->news[command->news_sent];
        if (!all->is_last &&
            send(all->config->orders, news, sizeof(*news), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
            order_may_pass_later(errno)) {
            return false;
        }
        command->news_sent++;
    }
    return true;
}

/* Forgets the commands that baton run knows to have ended. True: it knows all there is. */
static bool send_all_news(struct supervision *all)
{
    bool is_known = true;

    for (struct command *command = all->commands, *next; command; command = next) {
        next = command->next;
        is_known = is_known && send_news(all, command);
        if (command->has_ended && command->foreman == 0 &&
            command->news_sent == command->news_count) {
            DL_DELETE(all->commands, command);
            free(command);
        }
    }
    return is_known;
}

/* ---- The lease ------------------------------------------------------------------------------- */

static bool is_idle(const struct supervision *all)
{
    for (const struct command *command = all->commands; command; command = command->next) {
        if (!command->has_ended) {
            return false;
        }
    }
    return true;
}

/* Sets the timer, or ends the commands if the lease is about to end. The timer fires once per
 * lease, however often the lease is renewed. */
static void look_at_lease(struct supervision *all)
{
    span left = lease_watch_left(all->config->lease);
    int64_t tenth = left.ns / 10;
    struct itimerspec alarm = {0};

    if (!all->config->guards_lease || is_idle(all) || all->is_ending) {
        return;
    }
    if (tenth > MARGIN_MAX.ns) {
        tenth = MARGIN_MAX.ns;
    }
    if (tenth > all->margin.ns) {
        all->margin = SPAN_NS(tenth);
    }
    if (left.ns <= all->margin.ns) {
        all->is_overdue = all->is_ending = true;
        return;
    }
    if (left.ns != INT64_MAX) {
        int64_t at_ns = atomic_load(&all->config->lease->end_ns) - all->margin.ns;
        alarm.it_value.tv_sec = at_ns / 1000000000;
        alarm.it_value.tv_nsec = at_ns % 1000000000;
    }
    (void)timerfd_settime(all->alarm, TFD_TIMER_ABSTIME, &alarm, NULL);
}

/* ---- Ending ---------------------------------------------------------------------------------- */

static bool is_foreman(const void *userdata, pid_t pid)
{
    const struct supervision *all = userdata;
    const struct command *command;

    DL_SEARCH_SCALAR(all->commands, command, foreman, pid);
    return command != NULL;
}

/* Kills what killed foremen left behind. `number` 0: of all commands. Returns how many are left. */
static int kill_strays(const struct supervision *all, uint32_t number)
{
    int count = children_kill(is_foreman, all);

    if (count < 0) { /* the kernel has no list of children: by marker */
        struct victims strays = {0};
        (void)snprintf(strays.marker, sizeof(strays.marker), number ? "%s-%" PRIu32 : "%s",
                       all->config->marker, number);
        (void)victims_hunt(&strays, 0);
    }
    return count < 0 ? 0 : count;
}

static void instruct(const struct command *command, int what)
{
    if (command->foreman != 0) {
        (void)kill(command->foreman, FOREMAN_SIGNAL(what));
    }
}

/* Foremen are asked first, since each knows its command's process group; then they are killed, and
 * what they leave becomes a child of this process. */
static void end_foremen(struct supervision *all)
{
    instant now = clock_now();

    for (struct command *command = all->commands; command; command = command->next) {
        if (!all->is_asked) {
            instruct(command, FOREMAN_LEAVE);
        } else if (!instant_before(now, all->kill_at) && command->foreman != 0) {
            (void)kill(command->foreman, SIGKILL);
        }
    }
    if (!all->is_asked) {
        all->is_asked = true;
        all->kill_at = instant_add(now, SPAN_MS(PATIENCE_MS));
    }
}

/* Returns true when no descendant is left. */
static bool end_all(struct supervision *all)
{
    const char *cgroup = all->config->cgroup;

    victims_kill_cgroup(cgroup);
    end_foremen(all);
    return kill_strays(all, 0) == 0 && !children_are_left() && victims_cgroup_is_empty(cgroup);
}

/* Ends processes that a service started with a command's environment: they are no children of this
 * process. If the guardian asked, the guardian itself looks for them; an agent does not. */
static void end_marked(const struct supervision *all)
{
    struct victims strays = {0};

    if (!all->is_last || all->config->agent) {
        (void)snprintf(strays.marker, sizeof(strays.marker), "%s", all->config->marker);
        (void)victims_hunt(&strays, STRAYS_MS);
    }
}

static void note_all_ended(struct supervision *all)
{
    for (struct command *command = all->commands; command; command = command->next) {
        if (!command->has_ended) {
            note_killed(command, all->is_overdue);
        }
    }
    all->is_ending = all->is_overdue = all->is_asked = false;
}

/* A command whose foreman was killed has ended when nothing is left of it. While all are being
 * ended, note_all_ended() does it, with the reason. */
static bool end_abandoned(struct supervision *all)
{
    char cgroup[VICTIMS_PATH_MAX];
    bool is_settled = true;

    for (struct command *command = all->commands; command && !all->is_ending;
         command = command->next) {
        if (command->foreman != 0 || command->has_ended) {
            continue;
        }
        foreman_name_cgroup(cgroup, all->config->cgroup, command->number);
        victims_kill_cgroup(cgroup);
        if (kill_strays(all, command->number) == 0 && victims_cgroup_is_empty(cgroup)) {
            note_killed(command, false);
        } else {
            is_settled = false;
        }
    }
    return is_settled;
}

/* Takes the exit statuses of foremen and adopted children. */
static void reap(struct supervision *all)
{
    siginfo_t ended = {0};
    struct command *command;

    while (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | __WALL) == 0 && ended.si_pid != 0) {
        hear_foremen(all); /* what it reported before its end */
        DL_SEARCH_SCALAR(all->commands, command, foreman, ended.si_pid);
        if (command) {
            command->foreman = 0;
        }
        ended.si_pid = 0;
    }
}

/* ---- Orders ---------------------------------------------------------------------------------- */

/* Commands end before the lease does; NULL: they may outlive it. */
static const struct lease_watch *commands_lease(const struct supervisor *config)
{
    return config->guards_lease ? config->lease : NULL;
}

/* These must not outlive the supervisor: its lock is one of them. */
static void close_own(const struct supervisor *config)
{
    (void)close(config->orders);
    (void)close(config->guardian);
    (void)close(config->wrapper);
    (void)close(config->record);
}

/* Returns 0 or an errno. */
static int fork_foreman(const struct supervision *all, struct command *command,
                        const struct order *order, const int rights[ORDER_RIGHTS])
{
    struct foreman_config config = {.marker = all->config->marker,
                                    .cgroup = all->config->cgroup,
                                    .ignored = &all->config->ignored,
                                    .lease = commands_lease(all->config),
                                    .order = order,
                                    .words = rights[RIGHT_WORDS],
                                    .output = rights[RIGHT_OUTPUT],
                                    .progress = rights[RIGHT_PROGRESS],
                                    .news = all->foremens_news};
    pid_t parent = getpid(), child;

    if (rights[order->descriptors - 1] < 0) {
        return EMFILE; /* they were lost */
    }
    child = fork();
    if (child == 0) {
        close_own(all->config);
        foreman_run(&config, parent);
    }
    command->foreman = child > 0 ? child : 0;
    return child > 0 ? 0 : errno;
}

static void start(struct supervision *all, const struct order *order,
                  const int rights[ORDER_RIGHTS])
{
    struct command *command = calloc(1, sizeof(*command));
    struct news none = {.type = NEWS_REFUSED, .command = order->command, .value = ENOMEM};
    bool is_first = is_idle(all);
    int errnum;

    if (!command) {
        (void)!send(all->config->orders, &none, sizeof(none), MSG_NOSIGNAL | MSG_DONTWAIT);
        return;
    }
    command->number = order->command;
    if (is_first) { /* before the lease is read, since the disk may stall */
        record_note_lease(all->config->record, lease_watch_left(all->config->lease));
        all->margin = SPAN_NS(0);
    }
    errnum = all->is_ending || foreman_is_too_late(commands_lease(all->config))
                 ? ETIME
                 : fork_foreman(all, command, order, rights);
    if (errnum == ETIME) {
        note_killed(command, true);
    } else if (errnum != 0) {
        note(command, NEWS_REFUSED, errnum, false);
    }
    DL_APPEND(all->commands, command);
    look_at_lease(all);
}

/* A descriptor that was lost, or is not there, is -1. */
static ssize_t receive(int fd, struct order *ret, int ret_rights[ORDER_RIGHTS])
{
    union {
        char bytes[CMSG_SPACE(ORDER_RIGHTS * sizeof(int))];
        struct cmsghdr aligned;
    } ancillary = {0};
    struct iovec data = {.iov_base = ret, .iov_len = sizeof(*ret)};
    struct msghdr header = {.msg_iov = &data,
                            .msg_iovlen = 1,
                            .msg_control = &ancillary,
                            .msg_controllen = sizeof(ancillary)};
    ssize_t bytes = recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *control = bytes > 0 ? CMSG_FIRSTHDR(&header) : NULL;

    for (int i = 0; i < ORDER_RIGHTS; i++) {
        ret_rights[i] = -1;
    }
    if (control != NULL && control->cmsg_type == SCM_RIGHTS) {
        memcpy(ret_rights, CMSG_DATA(control), control->cmsg_len - CMSG_LEN(0));
    }
    return bytes;
}

static void take_orders(struct supervision *all)
{
    struct order order;
    int rights[ORDER_RIGHTS];
    ssize_t bytes = receive(all->config->orders, &order, rights);
    struct command *command;

    if (bytes == 0 || (bytes < 0 && errno != EAGAIN && errno != EINTR)) {
        all->is_last = true; /* baton run has ended, or is about to */
    }
    if (bytes != (ssize_t)sizeof(order)) {
        return;
    }
    command = find(all, order.command);
    if (order.type == ORDER_START) {
        start(all, &order, rights);
    } else if (command && order.type == ORDER_SIGNAL) {
        instruct(command, order.number);
    } else if (command && !command->has_ended && command->foreman != 0) {
        instruct(command, FOREMAN_KILL);
        (void)kill(command->foreman, SIGCONT); /* it may be stopped */
    }
    for (int i = 0; i < ORDER_RIGHTS; i++) {
        if (rights[i] >= 0) {
            (void)close(rights[i]);
        }
    }
}

static void listen_to_guardian(struct supervision *all)
{
    char byte = 0;

    if (recv(all->config->guardian, &byte, 1, MSG_DONTWAIT) == 1 && byte == VICTIMS_END) {
        all->is_last = true;
    }
}

/* ---- The whole ------------------------------------------------------------------------------- */

enum { ORDERS, GUARDIAN, WRAPPER, NEWS, CHILDREN, ALARM, WAKE, SOURCES };

static void read_count(int fd)
{
    uint64_t count;

    (void)!read(fd, &count, sizeof(count));
}

static void look(struct supervision *all, const struct pollfd polls[SOURCES])
{
    struct signalfd_siginfo ignored;
    bool was_last = all->is_last;

    if (polls[CHILDREN].revents != 0) {
        (void)!read(all->children, &ignored, sizeof(ignored));
    }
    hear_foremen(all);
    reap(all);
    if ((polls[ORDERS].revents & ~POLLOUT) != 0) {
        take_orders(all);
    }
    if (polls[GUARDIAN].revents != 0) {
        listen_to_guardian(all);
    }
    all->is_last |= polls[WRAPPER].revents != 0;
    if (polls[ALARM].revents != 0) {
        read_count(all->alarm);
    }
    if (polls[WAKE].revents != 0) {
        read_count(all->config->lease->wake_fd);
    }
    if (polls[ALARM].revents != 0 || polls[WAKE].revents != 0) {
        look_at_lease(all);
    }
    all->is_ending |= all->is_last;
    if (all->is_last && !was_last) { /* descriptors may be short, and the end needs some */
        (void)close(all->config->orders);
        (void)close(all->config->wrapper);
    }
}

static void wait_and_look(struct supervision *all)
{
    const struct supervisor *config = all->config;
    bool is_settled = end_abandoned(all);
    bool is_known = all->is_ending || send_all_news(all); /* news of an end: when all have ended */
    struct pollfd polls[SOURCES] = {
        [ORDERS] = {.fd = all->is_last ? -1 : config->orders,
                    .events = (short)(is_known ? POLLIN : POLLIN | POLLOUT)},
        [GUARDIAN] = {.fd = all->is_last ? -1 : config->guardian, .events = POLLIN},
        [WRAPPER] = {.fd = all->is_last ? -1 : config->wrapper, .events = POLLIN},
        [NEWS] = {.fd = all->news, .events = POLLIN},
        [CHILDREN] = {.fd = all->children, .events = POLLIN},
        [ALARM] = {.fd = all->alarm, .events = POLLIN},
        [WAKE] = {.fd = config->lease->wake_fd, .events = POLLIN},
    };

    (void)poll(polls, SOURCES, all->is_ending || !is_settled ? AGAIN_MS : -1);
    look(all, polls);
}

/* Ignores signals of the terminal and the service manager: the supervisor ends when no descendant
 * is left. */
static void prepare(struct supervision *all)
{
    static const int ignored[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGPIPE,
                                  SIGUSR1, SIGUSR2, SIGALRM, SIGTTIN, SIGTTOU};
    sigset_t child, blocked;
    int news[2] = {-1, -1};

    (void)setpgid(0, 0);
    (void)prctl(PR_SET_NAME, "baton-supervise");
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* there since Linux 3.4 */
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++) {
        (void)signal(ignored[i], SIG_IGN);
    }
    (void)signal(SIGCHLD, SIG_DFL); /* if ignored, exit statuses would be lost */
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    blocked = child;
    foreman_add_signals(&blocked);
    (void)sigprocmask(SIG_SETMASK, &blocked, NULL);
    (void)socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, news);
    all->news = news[0];
    all->foremens_news = news[1];
    all->children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    all->alarm = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (news[0] < 0 || all->children < 0 || all->alarm < 0) {
        _exit(EXIT_FAILURE); /* baton run ends, too */
    }
}

/* The agent waits for it before the death of `baton run` counts. */
static void report_to_agent(const struct supervisor *config)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval limit = {.tv_sec = 1};
    char line[2 * VICTIMS_TOKEN_MAX];
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int bytes = snprintf(line, sizeof(line), "{\"id\":1,\"do\":\"gone\",\"token\":\"%s\"}\n",
                         config->token);

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", config->agent);
    if (fd >= 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
        (void)!(connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
                send(fd, line, (size_t)bytes, MSG_NOSIGNAL) == bytes);
        (void)close(fd);
    }
}

_Noreturn void supervisor_run(const struct supervisor *supervisor)
{
    struct supervision all = {.config = supervisor};
    char byte = VICTIMS_NONE_LEFT;

    prepare(&all);
    while (!all.is_last || all.is_ending) {
        wait_and_look(&all);
        if (all.is_ending && end_all(&all)) {
            end_marked(&all);
            note_all_ended(&all);
        }
    }
    (void)!send(supervisor->guardian, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (supervisor->agent) {
        report_to_agent(supervisor);
    }
    victims_remove_cgroup(supervisor->cgroup);
    record_clear(supervisor->record);
    _exit(EXIT_SUCCESS);
}
