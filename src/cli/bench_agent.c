#include "cli/bench_agent.h"

#include "cli/cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_S = 20, LOOK_AGAIN_MS = 5 };

static const char *path_of(const struct bench_agent *agent)
{
    return agent->url + strlen("agent:");
}

static bool listens(const struct bench_agent *agent)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool does;

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path_of(agent));
    does = fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    return does;
}

static _Noreturn void become_agent(const struct bench_agent *agent, const char *listen,
                                   span client_lease)
{
    char data[80], lease[32];
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int fd = 0; null >= 0 && fd <= 2; fd++) {
        (void)dup2(null, fd);
    }
    (void)snprintf(data, sizeof(data), "%s/data", agent->folder);
    (void)snprintf(lease, sizeof(lease), "%lldms", (long long)client_lease.ns / 1000000);
    (void)execl("/proc/self/exe", "baton", "agent", "--node", "host", "--socket", path_of(agent),
                "--data", data, "--listen", listen, "--client-lease", lease, (char *)NULL);
    _exit(127);
}

int bench_agent_start(struct bench_agent *agent, span client_lease, struct baton_error *reterr)
{
    instant end = instant_add(clock_now(), SPAN_S(WAIT_S));
    const struct timespec pause = {.tv_nsec = LOOK_AGAIN_MS * 1000000L};
    char listen[32];
    int code = cluster_free_address(listen, sizeof(listen), reterr);

    (void)snprintf(agent->folder, sizeof(agent->folder), "%s", "/tmp/baton-agent-XXXXXX");
    if (!code && !mkdtemp(agent->folder)) {
        code = error_set(reterr, BATON_EIO, "%s: %s", agent->folder, strerror(errno));
    }
    if (code) {
        agent->folder[0] = '\0';
        return code;
    }
    (void)snprintf(agent->url, sizeof(agent->url), "agent:%s/socket", agent->folder);
    agent->pid = fork();
    if (agent->pid == 0) {
        become_agent(agent, listen, client_lease);
    }
    while (agent->pid > 0 && !listens(agent)) {
        if (!instant_before(clock_now(), end)) {
            return error_set(reterr, BATON_ETIMEDOUT, "the agent at %s: no answer in %d s",
                             path_of(agent), WAIT_S);
        }
        (void)nanosleep(&pause, NULL);
    }
    return agent->pid > 0 ? 0 : error_set(reterr, BATON_EIO, "the agent cannot be started");
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
