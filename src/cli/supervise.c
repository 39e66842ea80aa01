#include "cli/supervise.h"

#include "base/clock.h"
#include "cli/children.h"
#include "cli/record.h"
#include "cli/settings.h"
#include "options/exit_code.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HUNT_MS = 200, LAST_KILL_MS = 2000 };

/* ---- The cgroup ------------------------------------------------------------------------------ */

/* Finds the mount point of cgroup v2: "ID PARENT MAJ:MIN ROOT MOUNT … - cgroup2 …". */
static bool find_mount(char *ret, size_t ret_bytes)
{
    char line[1024], mount[512];
    bool is_found = false;
    FILE *file = fopen("/proc/self/mountinfo", "re");

    while (file && !is_found && fgets(line, sizeof(line), file)) {
        if (strstr(line, " - cgroup2 ") && sscanf(line, "%*s %*s %*s %*s %511s", mount) == 1) {
            int length = snprintf(ret, ret_bytes, "%s", mount);
            is_found = length > 0 && (size_t)length < ret_bytes;
        }
    }
    if (file) {
        (void)fclose(file);
    }
    return is_found;
}

/* Finds this process's cgroup: "0::/path". */
static bool find_place(char *ret, size_t ret_bytes)
{
    char line[1024];
    bool is_found = false;
    FILE *file = fopen("/proc/self/cgroup", "re");

    while (file && !is_found && fgets(line, sizeof(line), file)) {
        if (strncmp(line, "0::/", 4) == 0) {
            line[strcspn(line, "\n")] = '\0';
            int length = snprintf(ret, ret_bytes, "%s", line + 3);
            is_found = length > 0 && (size_t)length < ret_bytes;
        }
    }
    if (file) {
        (void)fclose(file);
    }
    return is_found;
}

/* A cgroup is used only if the kernel can kill it as a whole. */
static bool can_kill(const char *folder)
{
    char path[VICTIMS_PATH_MAX + 16];
    (void)snprintf(path, sizeof(path), "%s/cgroup.kill", folder);
    return access(path, W_OK) == 0;
}

/* The folder's name is the marker's value, which no other run has. "": this process may not make
 * one. */
static void make_cgroup(char ret_folder[VICTIMS_PATH_MAX], const char *marker)
{
    char mount[256], place[256];
    int length;

    if (!find_mount(mount, sizeof(mount)) || !find_place(place, sizeof(place))) {
        return;
    }
    length = snprintf(ret_folder, VICTIMS_PATH_MAX, "%s%s/baton-run-%s", mount,
                      strcmp(place, "/") == 0 ? "" : place, strchr(marker, '=') + 1);
    if (length >= VICTIMS_PATH_MAX || mkdir(ret_folder, 0755) != 0) {
        ret_folder[0] = '\0';
    } else if (!can_kill(ret_folder)) {
        (void)rmdir(ret_folder);
        ret_folder[0] = '\0';
    }
}

/* ---- Life ------------------------------------------------------------------------------------ */

/* Appends `count` random bytes in hexadecimal. */
static int append_random(char *ret, size_t room, size_t count, struct baton_error *reterr)
{
    unsigned char random[32];
    size_t used = strlen(ret);

    if (getrandom(random, count, 0) != (ssize_t)count) {
        return error_set(reterr, BATON_EIO, "no random bytes: %s", strerror(errno));
    }
    for (size_t i = 0; i < count; i++) {
        used += (size_t)snprintf(ret + used, room - used, "%02x", random[i]);
    }
    return 0;
}

/* CMD knows the marker, but not the token. */
static int make_names(struct victims *victims, bool has_agent, struct baton_error *reterr)
{
    int code;

    (void)snprintf(victims->marker, sizeof(victims->marker), "BATON_RUN=");
    code = append_random(victims->marker, sizeof(victims->marker), 16, reterr);
    return code || !has_agent ? code
                              : append_random(victims->token, sizeof(victims->token), 32, reterr);
}

/* Makes a socket pair. Descriptor 0 is never used: 0 means none. */
static bool make_pair(int ret[2])
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return false;
    }
    for (int i = 0; i < 2; i++) {
        ret[i] = fcntl(pair[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        (void)close(pair[i]);
    }
    return ret[0] >= 0 && ret[1] >= 0;
}

static bool share_lease(struct supervise *supervise)
{
    struct lease_watch *lease =
        mmap(NULL, sizeof(*lease), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (lease == MAP_FAILED) {
        return false;
    }
    lease->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    supervise->lease = lease;
    return lease->wake_fd >= 0;
}

/* Forks without exec: this process is still small, and the supervisor needs no program of its own.
 */
static void fork_supervisor(struct supervise *supervise, const struct supervisor *theirs,
                            const int orders[2], const int guardian[2])
{
    struct record record = {.wrapper = getpid(),
                            .marker = supervise->victims.marker,
                            .cgroup = supervise->victims.cgroup};
    pid_t child = fork();

    if (child == 0) {
        (void)close(orders[0]);
        (void)close(guardian[0]);
        record.supervisor = getpid();
        record_write(theirs->record, &record);
        supervisor_run(theirs);
    }
    supervise->supervisor = child;
}

static void note_ignored(sigset_t *ret)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT};

    sigemptyset(ret);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (supervise_ignores(numbers[i])) {
            (void)sigaddset(ret, numbers[i]);
        }
    }
}

static int start_supervisor(struct supervise *supervise, const struct supervise_config *config,
                            int record, struct baton_error *reterr)
{
    int orders[2] = {-1, -1}, guardian[2] = {-1, -1};
    struct supervisor theirs = {.marker = supervise->victims.marker,
                                .cgroup = supervise->victims.cgroup,
                                .agent = config->agent,
                                .token = supervise->victims.token,
                                .wrapper = pidfd_open(getpid(), 0),
                                .record = record,
                                .guards_lease = !config->outlives};

    supervise->supervisor = -1;
    note_ignored(&theirs.ignored);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* adopts CMD if the supervisor is killed */
    if (theirs.wrapper >= 0 && make_pair(orders) && make_pair(guardian) && share_lease(supervise)) {
        make_cgroup(supervise->victims.cgroup, supervise->victims.marker);
        theirs.lease = supervise->lease;
        theirs.orders = orders[1];
        theirs.guardian = guardian[1];
        fork_supervisor(supervise, &theirs, orders, guardian);
    }
    int errnum = errno;
    (void)close(theirs.wrapper);
    (void)close(orders[1]);
    (void)close(guardian[1]);
    if (supervise->supervisor < 0) {
        (void)close(orders[0]);
        (void)close(guardian[0]);
        return error_set(reterr, BATON_EIO, "no supervisor of commands: %s%s", strerror(errnum),
                         theirs.wrapper < 0 && errnum != EMFILE && errnum != ENFILE
                             ? "; Linux 5.3 or later is needed, and pidfd_open(2) must be allowed"
                             : "");
    }
    supervise->orders = orders[0];
    supervise->victims.supervisor = guardian[0];
    supervise->victims.process = pidfd_open(supervise->supervisor, 0);
    return supervise->victims.process >= 0
               ? 0
               : error_set(reterr, BATON_EIO, "no pidfd of the supervisor of commands: %s",
                           strerror(errno));
}

int supervise_init(struct supervise *supervise, const struct supervise_config *config,
                   struct baton_error *reterr)
{
    int record = -1;

    *supervise =
        (struct supervise){.orders = -1, .outlives = config->outlives, .logger = config->logger};
    int code = make_names(&supervise->victims, config->agent != NULL, reterr);
    if (!code && config->data) {
        code = record_take(&record, config->data, config->logger, reterr);
    }
    code = code ? code : start_supervisor(supervise, config, record, reterr);
    if (record >= 0) {
        (void)close(record); /* the supervisor keeps the lock */
    }
    return code;
}

int supervise_begin(struct supervise *supervise, const struct options *options,
                    struct logger *logger, struct baton_error *reterr)
{
    char *data = NULL;
    struct supervise_config config = {.outlives = options_find(options, "outlive-lease") &&
                                                  options_flag(options, "outlive-lease"),
                                      .logger = logger};
    char agent[LOCAL_PATH_MAX];
    int code = settings_make_data(&data, options, reterr);

    code = code ? code : settings_agent(agent, options, reterr);
    config.data = data;
    config.agent = !code && agent[0] ? agent : NULL;
    code = code ? code : supervise_init(supervise, &config, reterr);
    free(data);
    return code;
}

void supervise_fini(struct supervise *supervise)
{
    if (supervise->orders >= 0) {
        struct pollfd ended = {.fd = supervise->victims.process, .events = POLLIN};
        (void)close(supervise->orders);      /* the supervisor kills all, and ends */
        (void)poll(&ended, 1, LAST_KILL_MS); /* the rest is left to it */
        (void)waitpid(supervise->supervisor, NULL, WNOHANG);
        (void)close(supervise->victims.process);
        (void)close(supervise->victims.supervisor);
    }
    *supervise = (struct supervise){.orders = -1, .lease = supervise->lease};
}

void supervise_tell(const struct supervise *supervise)
{
    bool has_proc = victims_has_proc(), has_cgroup = supervise->victims.cgroup[0];

    log_notice(supervise->logger, "supervised", LOG_I64("supervisor", supervise->supervisor),
               LOG_STR("by", has_proc && has_cgroup ? "ancestry and cgroup"
                             : has_proc             ? "ancestry"
                             : has_cgroup           ? "cgroup"
                                                    : "process group"),
               LOG_STR("cgroup", supervise->victims.cgroup),
               LOG_STR("at_lease_end", supervise->outlives ? "may go on" : "ends"));
}

bool supervise_ignores(int number)
{
    struct sigaction now;
    bool is_known = number == SIGHUP || number == SIGINT || number == SIGQUIT;
    return is_known && sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

/* ---- Orders and news ------------------------------------------------------------------------- */

/* The children of a dead supervisor are now children of this process: all of them are killed where
 * that is permitted. The guardian is one of them, and has nothing to certify any more. */
static void end_orphans(void)
{
    instant limit = instant_add(clock_now(), SPAN_MS(LAST_KILL_MS));

    while (children_kill(NULL, NULL) > 0 && instant_before(clock_now(), limit)) {
        (void)poll(NULL, 0, 1);
    }
}

/* This process must not hand leadership over, since a command may still act: it ends at once. */
static _Noreturn void end_without_supervisor(const struct supervise *supervise)
{
    log_error(supervise->logger, "supervisor-is-dead",
              LOG_STR("text", "CMD may be alive: all that is found of it is killed, and the lease "
                              "runs out"));
    (void)victims_hunt(&supervise->victims, HUNT_MS);
    end_orphans();
    victims_remove_cgroup(supervise->victims.cgroup);
    _exit(EXIT_REFUSED);
}

void supervise_tell_dead(const struct supervise *supervise)
{
    log_error(supervise->logger, "supervisor-is-dead",
              LOG_STR("text", "no CMD runs, and none could be started: this process ends"));
}

int supervise_give(const struct supervise *supervise, const struct order *order,
                   const int rights[ORDER_RIGHTS])
{
    struct order copy = *order;
    struct iovec data = {.iov_base = &copy, .iov_len = sizeof(copy)};
    union {
        char bytes[CMSG_SPACE(ORDER_RIGHTS * sizeof(int))];
        struct cmsghdr aligned;
    } ancillary = {0};
    struct msghdr header = {.msg_iov = &data, .msg_iovlen = 1};
    size_t count = rights ? (size_t)order->descriptors : 0;

    if (count > 0) {
        ancillary.aligned = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                                             .cmsg_type = SCM_RIGHTS,
                                             .cmsg_len = CMSG_LEN(count * sizeof(int))};
        memcpy(CMSG_DATA(&ancillary.aligned), rights, count * sizeof(int));
        header.msg_control = &ancillary;
        header.msg_controllen = CMSG_SPACE(count * sizeof(int));
    }
    while (sendmsg(supervise->orders, &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        if (!order_may_pass_later(errno)) {
            return errno == ETOOMANYREFS ? errno : 0; /* too many descriptors are under way */
        }
        if (!rights) {
            return errno;
        }
        (void)poll(&(struct pollfd){.fd = supervise->orders, .events = POLLOUT}, 1, -1);
    }
    return 0;
}

void supervise_kill(const struct supervise *supervise, uint32_t command)
{
    (void)supervise_give(supervise, &(struct order){.type = ORDER_KILL, .command = command}, NULL);
    victims_wake_supervisor(&supervise->victims);
}

bool supervise_hear(const struct supervise *supervise, bool waits, struct news *ret)
{
    struct news news;
    ssize_t bytes;

    while ((bytes = recv(supervise->orders, &news, sizeof(news), MSG_DONTWAIT)) < 0 &&
           (errno == EINTR || (errno == EAGAIN && waits))) {
        (void)poll(&(struct pollfd){.fd = supervise->orders, .events = POLLIN}, 1, -1);
    }
    if (bytes < 0 && errno == EAGAIN) {
        return false;
    }
    if (bytes != (ssize_t)sizeof(news)) {
        end_without_supervisor(supervise);
    }
    *ret = news;
    return true;
}
