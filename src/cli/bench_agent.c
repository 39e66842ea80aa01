#include "cli/bench_agent.h"

#include "cli/cluster.h"
#include "net/line_client.h"
#include "net/local.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_S = 20, LOOK_AGAIN_MS = 5, WORDS_MAX = 24 };

const char *bench_agent_socket(const struct bench_agent *agent)
{
    return agent->url + strlen("agent:");
}

static bool listens(const struct bench_agent *agent)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool does;

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", bench_agent_socket(agent));
    does = fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    return does;
}

/* What not every agent gets. */
struct extra {
    struct bench_network *network; /* at this host of it; NULL: on loopback */
    unsigned host;
    const char *flags[WORDS_MAX];
    size_t count;
};

static void add(struct extra *extra, const char *flag, const char *value)
{
    extra->flags[extra->count++] = flag;
    extra->flags[extra->count++] = value;
}

static _Noreturn void become_agent(const struct bench_agent *agent, const char *name,
                                   const char *listen, const struct extra *extra)
{
    char data[80];
    const char *words[WORDS_MAX] = {"baton", "agent",  "--node", name,       "--socket",
                                    NULL,    "--data", data,     "--listen", listen};
    size_t count = 10;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setpgid(0, 0); /* Ctrl-C reaches only the benchmark */
    for (int fd = 0; null >= 0 && fd <= 2; fd++) {
        (void)dup2(null, fd);
    }
    (void)snprintf(data, sizeof(data), "%s/data", agent->folder);
    words[5] = bench_agent_socket(agent);
    for (size_t i = 0; i < extra->count && count < WORDS_MAX - 1; i++) {
        words[count++] = extra->flags[i];
    }
    if (extra->network && !bench_network_enter(extra->network, extra->host)) {
        _exit(126);
    }
    (void)execv("/proc/self/exe", (char *const *)words);
    _exit(127);
}

static int launch(struct bench_agent *agent, const char *name, const char *listen,
                  const struct extra *extra, struct baton_error *reterr)
{
    (void)snprintf(agent->url, sizeof(agent->url), "agent:%s/socket", agent->folder);
    agent->pid = fork();
    if (agent->pid == 0) {
        become_agent(agent, name, listen, extra);
    }
    if (agent->pid < 0) {
        agent->pid = 0;
        return error_set(reterr, BATON_EIO, "the agent cannot be started: %s", strerror(errno));
    }
    return BATON_OK;
}

static int await(struct bench_agent *agent, struct baton_error *reterr)
{
    instant end = instant_add(clock_now(), SPAN_S(WAIT_S));
    const struct timespec pause = {.tv_nsec = LOOK_AGAIN_MS * 1000000L};
    int status = 0;

    while (!listens(agent)) {
        if (waitpid(agent->pid, &status, WNOHANG) == agent->pid) {
            agent->pid = 0;
            return error_set(reterr, BATON_EIO, "the agent at %s ended at its start, with %d",
                             bench_agent_socket(agent),
                             WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
        }
        if (!instant_before(clock_now(), end)) {
            return error_set(reterr, BATON_ETIMEDOUT, "the agent at %s: no answer in %d s",
                             bench_agent_socket(agent), WAIT_S);
        }
        (void)nanosleep(&pause, NULL);
    }
    return BATON_OK;
}

int bench_agent_start(struct bench_agent *agent, span client_lease, struct baton_error *reterr)
{
    char listen[32], lease[32];
    struct extra extra = {.count = 0};
    int code = cluster_free_address(listen, sizeof(listen), reterr);

    (void)snprintf(lease, sizeof(lease), "%lldms", (long long)client_lease.ns / 1000000);
    add(&extra, "--client-lease", lease);
    (void)snprintf(agent->folder, sizeof(agent->folder), "%s", "/tmp/baton-agent-XXXXXX");
    if (!code && !mkdtemp(agent->folder)) {
        code = error_set(reterr, BATON_EIO, "%s: %s", agent->folder, strerror(errno));
    }
    if (code) {
        agent->folder[0] = '\0';
        return code;
    }
    code = launch(agent, "host", listen, &extra, reterr);
    return code ? code : await(agent, reterr);
}

void bench_agent_kill(struct bench_agent *agent)
{
    if (agent->pid > 0) {
        (void)kill(agent->pid, SIGKILL);
        (void)waitpid(agent->pid, NULL, 0);
        agent->pid = 0;
    }
    if (agent->folder[0]) {
        cluster_remove(agent->folder);
        agent->folder[0] = '\0';
    }
}

/* ---- A group --------------------------------------------------------------------------------- */

static void key_path(const char *folder, char *ret, size_t bytes)
{
    (void)snprintf(ret, bytes, "%s/key", folder);
}

static int start_member(struct bench_group *group, unsigned number, const char *folder,
                        struct baton_error *reterr)
{
    struct bench_agent *agent = &group->agents[number];
    char name[8], key[80], lease[32], peers[BENCH_GROUP_AGENTS][48];
    struct extra extra = {.network = group->network, .host = number};

    for (unsigned i = 0; i < BENCH_GROUP_AGENTS; i++) {
        if (i != number) {
            (void)snprintf(peers[i], sizeof(peers[i]), "n%u=%s", i, group->addresses[i]);
            add(&extra, "--peer", peers[i]);
        }
    }
    if (group->network) {
        key_path(folder, key, sizeof(key));
        add(&extra, "--key-file", key);
    }
    if (group->client_lease.ns > 0) {
        (void)snprintf(lease, sizeof(lease), "%lldms", (long long)group->client_lease.ns / 1000000);
        add(&extra, "--client-lease", lease);
    }
    (void)snprintf(name, sizeof(name), "n%u", number);
    (void)snprintf(agent->folder, sizeof(agent->folder), "%s/n%u", folder, number);
    if (mkdir(agent->folder, 0700) != 0) {
        return error_set(reterr, BATON_EIO, "%s: %s", agent->folder, strerror(errno));
    }
    return launch(agent, name, group->addresses[number], &extra, reterr);
}

static int find_addresses(struct bench_group *group, const char *folder, struct baton_error *reterr)
{
    int code = BATON_OK;
    char key[80];

    for (unsigned i = 0; code == BATON_OK && i < BENCH_GROUP_AGENTS; i++) {
        char *address = group->addresses[i];
        if (group->network) {
            bench_network_address(i, address, sizeof(group->addresses[i]));
        } else {
            code = cluster_free_address(address, sizeof(group->addresses[i]), reterr);
        }
    }
    if (group->network) {
        key_path(folder, key, sizeof(key));
        code = cluster_make_key(key, reterr);
    }
    return code;
}

int bench_group_start(struct bench_group *group, const char *folder, struct baton_error *reterr)
{
    int code = find_addresses(group, folder, reterr);

    for (unsigned i = 0; code == BATON_OK && i < BENCH_GROUP_AGENTS; i++) {
        code = start_member(group, i, folder, reterr);
    }
    for (unsigned i = 0; code == BATON_OK && i < BENCH_GROUP_AGENTS; i++) {
        code = await(&group->agents[i], reterr);
    }
    return code;
}

static bool leads(const struct bench_agent *agent)
{
    static const struct line_server server = {"agent", "it may have crashed"};
    instant limit = instant_add(clock_now(), SPAN_S(WAIT_S));
    json_t *request = json_pack("{s:i, s:s}", "id", 1, "do", "status"), *reply = NULL;
    struct line_client client;
    const char *role;
    bool does;

    if (line_client_open(&client, &server, bench_agent_socket(agent), LOCAL_LINE_MAX,
                         SPAN_S(WAIT_S), NULL) == BATON_OK) {
        (void)line_client_send(&client, request, NULL); /* a failure shows as no reply */
        (void)line_client_next(&client, limit, &reply, NULL);
        line_client_close(&client);
    }
    role = json_string_value(json_object_get(json_object_get(reply, "provider_status"), "role"));
    does = role && strcmp(role, "leader") == 0;
    json_decref(request);
    json_decref(reply);
    return does;
}

int bench_group_leader(const struct bench_group *group)
{
    for (int i = 0; i < BENCH_GROUP_AGENTS; i++) {
        if (leads(&group->agents[i])) {
            return i;
        }
    }
    return -1;
}

void bench_group_kill(struct bench_group *group)
{
    for (unsigned i = 0; i < BENCH_GROUP_AGENTS; i++) {
        bench_agent_kill(&group->agents[i]);
    }
}
