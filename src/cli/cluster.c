#include "cli/cluster.h"

#include "net/control.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 40, END_WAIT_MS = 3000, KEY_BYTES = 32 };

/* *ret_fd holds the port until the caller closes it. */
static int hold_port(int *ret_fd, char *ret, size_t ret_bytes, struct baton_error *reterr)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *ret_fd = fd;
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &bytes) != 0) {
        return error_set(reterr, BATON_EIO, "no free port on loopback: %s", strerror(errno));
    }
    (void)snprintf(ret, ret_bytes, "127.0.0.1:%d", ntohs(address.sin_port));
    return 0;
}

int cluster_free_address(char *ret, size_t ret_bytes, struct baton_error *reterr)
{
    int fd;
    int code = hold_port(&fd, ret, ret_bytes, reterr);

    if (fd >= 0) {
        close(fd);
    }
    return code;
}

/* Holds every port until all are found, so that no port is used twice. */
static int find_ports(struct cluster *cluster, struct baton_error *reterr)
{
    int sockets[CLUSTER_NODES_MAX];
    unsigned opened = 0;
    int code = 0;
    while (!code && opened < cluster->plan.nodes) {
        struct cluster_node *node = &cluster->nodes[opened];
        code = hold_port(&sockets[opened++], node->address, sizeof(node->address), reterr);
    }
    while (opened > 0) {
        if (sockets[--opened] >= 0) {
            close(sockets[opened]);
        }
    }
    return code;
}

static void key_path(const struct cluster *cluster, char *ret, size_t bytes)
{
    (void)snprintf(ret, bytes, "%s/key", cluster->dir);
}

int cluster_make_key(const char *path, struct baton_error *reterr)
{
    unsigned char key[KEY_BYTES];
    FILE *file = getrandom(key, sizeof(key), 0) == sizeof(key) ? fopen(path, "wxe") : NULL;

    if (!file || fchmod(fileno(file), 0600) != 0) {
        int code = error_set(reterr, BATON_EIO, "%s: %s", path, strerror(errno));
        if (file) {
            (void)fclose(file);
        }
        return code;
    }
    for (size_t i = 0; i < sizeof(key); i++) {
        (void)fprintf(file, "%02x", key[i]);
    }
    return fclose(file) == 0 ? 0 : error_set(reterr, BATON_EIO, "%s: %s", path, strerror(errno));
}

struct arguments {
    char *words[ARGUMENTS_MAX];
    char space[ARGUMENTS_MAX][128];
    size_t count;
};

static void add(struct arguments *arguments, const char *word)
{
    char *copy = arguments->space[arguments->count];
    (void)snprintf(copy, sizeof(arguments->space[0]), "%s", word);
    arguments->words[arguments->count++] = copy;
}

static void add_pair(struct arguments *arguments, const char *flag, const char *value)
{
    add(arguments, flag);
    add(arguments, value);
}

static int take_hosts(struct cluster *cluster, struct baton_error *reterr)
{
    char path[96];

    for (unsigned i = 0; i < cluster->plan.nodes; i++) {
        bench_network_address(cluster->plan.first_host + i, cluster->nodes[i].address,
                              sizeof(cluster->nodes[i].address));
    }
    key_path(cluster, path, sizeof(path));
    return cluster_make_key(path, reterr);
}

/* NULL: the nodes hold the election themselves. */
static const char *server_of(const struct cluster *cluster, unsigned node)
{
    return cluster->plan.servers ? cluster->plan.servers[node] : cluster->plan.server;
}

static void fill_peer_arguments(const struct cluster *cluster, unsigned node, struct arguments *ret)
{
    char text[16];
    add(ret, cluster->plan.program);
    (void)snprintf(text, sizeof(text), "%u", node);
    add(ret, text);
    (void)snprintf(text, sizeof(text), "%u", cluster->plan.nodes);
    add(ret, text);
    add(ret, cluster->act_path);
    add(ret, cluster->nodes[node].data);
    add(ret, cluster->plan.mode);
    if (cluster->plan.server) {
        add(ret, cluster->plan.server);
        return;
    }
    for (unsigned i = 0; i < cluster->plan.nodes; i++) {
        add(ret, cluster->nodes[i].address);
    }
}

static void add_raft_flags(const struct cluster *cluster, unsigned node, struct arguments *ret)
{
    char text[128];

    add_pair(ret, "--listen", cluster->nodes[node].address);
    for (unsigned i = 0; i < cluster->plan.nodes; i++) {
        if (i != node) {
            (void)snprintf(text, sizeof(text), "%s=%s", cluster->nodes[i].name,
                           cluster->nodes[i].address);
            add_pair(ret, "--peer", text);
        }
    }
    add_pair(ret, "--preset", cluster->plan.preset);
    add_pair(ret, "--guardian", cluster->plan.guardian);
    add_pair(ret, "--elections-per-hour-max", "0");
    if (cluster->plan.network) { /* a pidfd proves a death without any network */
        key_path(cluster, text, sizeof(text));
        add_pair(ret, "--key-file", text);
        add_pair(ret, "--proofs", "guardian");
    }
}

static void fill_arguments(const struct cluster *cluster, unsigned node, struct arguments *ret)
{
    char text[128];
    *ret = (struct arguments){.count = 0};
    if (cluster->plan.program) {
        fill_peer_arguments(cluster, node, ret);
        return;
    }
    add(ret, "baton");
    add(ret, "node");
    add_pair(ret, "--node", cluster->nodes[node].name);
    add_pair(ret, "--data", cluster->nodes[node].data);
    if (server_of(cluster, node)) {
        add_pair(ret, "--provider", server_of(cluster, node));
    } else {
        add_raft_flags(cluster, node, ret);
    }
    if (cluster->plan.hang) {
        add_pair(ret, "--hang", cluster->plan.hang);
    }
    add_pair(ret, "--act-file", cluster->act_path);
    (void)snprintf(text, sizeof(text), "%u", node);
    add_pair(ret, "--act-slot", text);
    if (cluster->plan.resident_mb) {
        add_pair(ret, "--resident-mb", cluster->plan.resident_mb);
    }
    add(ret, "--test-switches");
}

/* The nodes do not inherit BATON_… variables: they get all settings as flags. The array is
 * malloc'ed; NULL when out of memory. */
static char **make_environment(void)
{
    size_t count = 0;
    size_t used = 0;
    while (environ[count]) {
        count++;
    }
    char **ret = calloc(count + 1, sizeof(*ret));
    for (size_t i = 0; ret && i < count; i++) {
        if (strncmp(environ[i], "BATON_", 6) != 0) {
            ret[used++] = environ[i];
        }
    }
    return ret;
}

/* Runs after fork: only async-signal-safe functions. */
static void become_node(const struct cluster *cluster, unsigned node,
                        const struct arguments *arguments, char *const *environment, int log,
                        pid_t parent)
{
    if (!cluster->plan.is_kept) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != (cluster->plan.is_contained ? 0 : parent)) {
            _exit(1);
        }
    }
    if ((cluster->plan.network &&
         !bench_network_enter(cluster->plan.network, cluster->plan.first_host + node)) ||
        (cluster->plan.memory && !bench_memory_enter(cluster->plan.memory, node))) {
        _exit(126);
    }
    (void)setpgid(0, 0); /* Ctrl-C reaches only the demonstration, which ends the nodes in order */
    (void)dup2(log, STDERR_FILENO);
    (void)dup2(log, STDOUT_FILENO);
    execve(cluster->plan.program ? cluster->plan.program : "/proc/self/exe", arguments->words,
           environment);
    _exit(127);
}

/* As fork(), into a new PID namespace, whose process 1 is the child. */
static pid_t fork_contained(void)
{
    return (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, 0);
}

int cluster_start(struct cluster *cluster, unsigned node, struct baton_error *reterr)
{
    struct arguments arguments;
    char path[160];
    fill_arguments(cluster, node, &arguments);
    (void)snprintf(path, sizeof(path), "%s.log", cluster->nodes[node].data);
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    pid_t parent = getpid();
    char **environment = make_environment();
    pid_t pid = log < 0 || !environment      ? -1
                : cluster->plan.is_contained ? fork_contained()
                                             : fork();
    if (pid == 0) {
        become_node(cluster, node, &arguments, environment, log, parent);
    }
    int errnum = errno;
    free(environment);
    if (log >= 0) {
        close(log);
    }
    if (pid < 0) {
        return error_set(reterr, BATON_EIO, "cannot start node %s: %s", cluster->nodes[node].name,
                         strerror(errnum));
    }
    (void)setpgid(pid, pid); /* here too, so that a signal to the group cannot come too early */
    cluster->nodes[node].pid = pid;
    cluster->nodes[node].state = CLUSTER_RUNNING;
    return 0;
}

int cluster_open(struct cluster *cluster, const struct cluster_plan *plan,
                 struct baton_error *reterr)
{
    *cluster = (struct cluster){.plan = *plan};
    (void)snprintf(cluster->dir, sizeof(cluster->dir), "%s", "/tmp/baton-XXXXXX");
    if (!mkdtemp(cluster->dir)) {
        return error_set(reterr, BATON_EIO, "%s: %s", cluster->dir, strerror(errno));
    }
    (void)snprintf(cluster->act_path, sizeof(cluster->act_path), "%s/act", cluster->dir);
    for (unsigned i = 0; i < plan->nodes; i++) {
        struct cluster_node *node = &cluster->nodes[i];
        (void)snprintf(node->name, sizeof(node->name), "%c", 'a' + (int)i);
        (void)snprintf(node->data, sizeof(node->data), "%s/%s", cluster->dir, node->name);
        node->state = CLUSTER_DEAD;
    }
    int code = act_open(&cluster->act, cluster->act_path, reterr);
    if (!code && plan->network) {
        code = take_hosts(cluster, reterr);
    } else if (!code) {
        code = find_ports(cluster, reterr);
    }
    for (unsigned i = 0; !code && i < plan->nodes; i++) {
        code = cluster_start(cluster, i, reterr);
    }
    if (code) {
        cluster_close(cluster, CLUSTER_NOTHING);
    }
    return code;
}

void cluster_forget_hangs(const struct cluster *cluster, unsigned node)
{
    char path[sizeof(cluster->nodes[node].data) + 16];

    (void)snprintf(path, sizeof(path), "%s/hang-kills", cluster->nodes[node].data);
    (void)unlink(path);
}

void cluster_signal(struct cluster *cluster, unsigned node, int number)
{
    pid_t pid = cluster->nodes[node].pid;
    if (pid > 0) {
        (void)kill(cluster->plan.program ? -pid : pid, number);
    }
    if (number == SIGSTOP || number == SIGCONT) {
        cluster->nodes[node].state = number == SIGSTOP ? CLUSTER_STOPPED : CLUSTER_RUNNING;
    }
}

pid_t cluster_elector(const struct cluster *cluster, unsigned node)
{
    int first = cluster->nodes[node].pid, elector = 0;
    char path[64];
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", first, first);
    file = fopen(path, "re");
    if (file) {
        elector = fscanf(file, "%d", &elector) == 1 ? elector : 0;
        (void)fclose(file);
    }
    return elector;
}

void cluster_kill(struct cluster *cluster, unsigned node)
{
    pid_t pid = cluster->nodes[node].pid;
    if (pid > 0) {
        (void)kill(cluster->plan.program ? -pid : pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
    cluster->nodes[node].pid = 0;
    cluster->nodes[node].state = CLUSTER_DEAD;
}

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *place)
{
    (void)about;
    (void)type;
    (void)place;
    return remove(path);
}

void cluster_remove(const char *folder)
{
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void cluster_close(struct cluster *cluster, enum cluster_rest rest)
{
    for (unsigned i = 0; rest != CLUSTER_ALL && i < cluster->plan.nodes; i++) {
        cluster_kill(cluster, i);
    }
    act_close(cluster->act);
    cluster->act = NULL;
    if (rest == CLUSTER_NOTHING) {
        cluster_remove(cluster->dir);
    }
}

int cluster_ask(const struct cluster *cluster, unsigned node, json_t *request_taken, span timeout,
                json_t **ret_answer, struct baton_error *reterr)
{
    char path[160];
    json_t *answer = NULL;
    (void)snprintf(path, sizeof(path), "%s/control.sock", cluster->nodes[node].data);
    int code = request_taken ? control_call(path, request_taken, timeout, &answer, reterr)
                             : error_set(reterr, BATON_ENOMEM, "out of memory");
    json_decref(request_taken);
    if (!code && !json_is_true(json_object_get(answer, "ok"))) {
        const char *text = json_string_value(json_object_get(answer, "error"));
        code = error_set(reterr, BATON_EPROTO, "node %s: %s", cluster->nodes[node].name,
                         text ? text : "refused");
    }
    if (!code && ret_answer) {
        *ret_answer = answer;
        return 0;
    }
    json_decref(answer);
    return code;
}

int cluster_cut_off(struct cluster *cluster, unsigned node, bool on, struct baton_error *reterr)
{
    int code = 0;

    if (cluster->plan.network) {
        bench_network_cut_off(cluster->plan.network, cluster->plan.first_host + node, on);
    } else {
        json_t *request = json_pack("{s:s,s:b}", "do", "isolate", "on", (int)on);
        code = cluster_ask(cluster, node, request, SPAN_S(5), NULL, reterr);
    }
    if (!code) {
        cluster->nodes[node].state = on ? CLUSTER_CUT_OFF : CLUSTER_RUNNING;
    }
    return code;
}

int cluster_leader(const struct cluster *cluster)
{
    int leader = -1;
    uint64_t epoch = 0;
    for (unsigned i = 0; i < cluster->plan.nodes; i++) {
        struct act_stamp stamp = act_read(cluster->act, i);
        bool leads = stamp.count > 0 && stamp.lost.ns < stamp.acquired.ns;
        if (leads && stamp.epoch > epoch && cluster->nodes[i].state == CLUSTER_RUNNING) {
            leader = (int)i;
            epoch = stamp.epoch;
        }
    }
    return leader;
}

static int leader_since(const struct cluster *cluster, int old, instant since)
{
    for (unsigned i = 0; i < cluster->plan.nodes; i++) {
        struct act_stamp stamp = act_read(cluster->act, i);
        if ((int)i != old && stamp.count > 0 && stamp.acquired.ns > since.ns) {
            return (int)i;
        }
    }
    return -1;
}

int cluster_wait_leader(const struct cluster *cluster, int old, instant since, instant deadline)
{
    for (;;) {
        uint32_t bells = act_bells(cluster->act);
        int leader = leader_since(cluster, old, since);
        if (leader >= 0 || !act_wait(cluster->act, bells, deadline)) {
            return leader;
        }
    }
}

int cluster_await_leader(const struct cluster *cluster, instant deadline)
{
    instant now = clock_now();
    int leader = cluster_leader(cluster);
    return leader < 0 ? cluster_wait_leader(cluster, -1, now, deadline) : leader;
}

span cluster_gap(const struct cluster *cluster, int old, int heir, instant fault)
{
    struct act_stamp before = act_read(cluster->act, (unsigned)old);
    struct act_stamp after = act_read(cluster->act, (unsigned)heir);
    bool ended_later = before.lost.ns > fault.ns && before.lost.ns < after.acquired.ns;
    return instant_since(after.acquired, ended_later ? before.lost : fault);
}
