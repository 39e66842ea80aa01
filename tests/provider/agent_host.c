#include "provider/agent_host.h"

#include "lib/process.h"

#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static int run(void *userdata)
{
    const struct agent_host *host = userdata;
    char data[192], listen[64];
    const char *arguments[] = {host->program,
                               "agent",
                               "--node",
                               "host",
                               "--socket",
                               host->url + sizeof("agent:") - 1,
                               "--client-lease",
                               host->lease,
                               "--data",
                               data,
                               "--listen",
                               listen,
                               NULL};

    (void)snprintf(data, sizeof(data), "%s/data", host->folder);
    (void)snprintf(listen, sizeof(listen), "127.0.0.1:%d", host->port);
    if (host->provider) {
        arguments[8] = "--provider";
        arguments[9] = host->provider;
        arguments[10] = NULL;
    }
    (void)!freopen("/dev/null", "w", stderr);
    (void)execv(host->program, (char *const *)(uintptr_t)arguments);
    return 127;
}

void agent_host_start(struct agent_host *host)
{
    host->pid = process_fork(run, host);
}

void agent_host_begin(struct agent_host *host)
{
    process_make_folder(host->folder, sizeof(host->folder));
    (void)snprintf(host->url, sizeof(host->url), "agent:%s/agent.sock", host->folder);
    host->port = process_free_port();
    agent_host_start(host);
}

void agent_host_kill(struct agent_host *host)
{
    process_end(host->pid);
}

void agent_host_end(struct agent_host *host)
{
    agent_host_kill(host);
    process_remove_folder(host->folder);
}
