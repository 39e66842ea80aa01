/* The providers that must pass: one line each in the table. */
#include "lib/process.h"
#include "provider/agent_host.h"
#include "provider/group.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- memory: --------------------------------------------------------------------------------- */

static void *memory_begin(void)
{
    static char name[32];
    static int groups;

    snprintf(name, sizeof(name), "suite-%d", ++groups);
    return name;
}

static void memory_url(void *group, int number, char *ret, size_t ret_bytes)
{
    snprintf(ret, ret_bytes, "memory:%s", (const char *)group);
}

static void memory_end(void *group)
{
}

/* ---- raft: ----------------------------------------------------------------------------------- */

struct raft_group {
    char folder[128];
    int ports[GROUP_NODES];
};

static void *raft_begin(void)
{
    struct raft_group *group = calloc(1, sizeof(*group));

    assert_non_null(group);
    process_make_folder(group->folder, sizeof(group->folder));
    process_free_ports(group->ports, GROUP_NODES);
    return group;
}

static void put_raft_url(const struct raft_group *group, const char *mode, int number, char *ret,
                         size_t ret_bytes)
{
    char data[192];

    snprintf(data, sizeof(data), "%s/n%d", group->folder, number);
    (void)mkdir(data, 0700);
    snprintf(ret, ret_bytes,
             "raft://"
             "127.0.0.1:%d?%s=suite&preset=fast&heartbeat-timeout=1s&lease=1s&guardian=no&data=%s"
             "&peers=n0@127.0.0.1:%d,n1@127.0.0.1:%d,n2@127.0.0.1:%d",
             group->ports[number], mode, data, group->ports[0], group->ports[1], group->ports[2]);
}

static void raft_url(void *group, int number, char *ret, size_t ret_bytes)
{
    put_raft_url(group, "cluster", number, ret, ret_bytes);
}

/* The group has named elections. */
static void named_url(void *group, int number, char *ret, size_t ret_bytes)
{
    put_raft_url(group, "group", number, ret, ret_bytes);
}

static void raft_end(void *state)
{
    struct raft_group *group = state;

    process_remove_folder(group->folder);
    free(group);
}

/* ---- redis: ---------------------------------------------------------------------------------- */

/* One server for all groups, each with a database of its own, until they begin anew: a server that
 * has only just started gives no lease for as long as one could last that it has forgotten. */
enum { DATABASES = 16 };

struct redis_server {
    int port;
    int groups;
};

static int redis_main(void *userdata)
{
    const struct redis_server *server = userdata;
    char port[12];

    snprintf(port, sizeof(port), "%d", server->port);
    execlp("redis-server", "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "",
           "--dbfilename", "", "--appendonly", "no", "--logfile", "/dev/null", (char *)NULL);
    return 127;
}

static void *redis_begin(void)
{
    static struct redis_server server;

    if (server.groups++ == 0) {
        server.port = process_free_port();
        (void)process_fork(redis_main, &server); /* ends with this process */
    }
    return &server;
}

static void redis_url(void *group, int number, char *ret, size_t ret_bytes)
{
    const struct redis_server *server = group;

    snprintf(ret, ret_bytes,
             "redis://127.0.0.1:%d/"
             "%d?lease=900ms&max-lease=900ms&check-interval=500ms&state-prefix=suite-%d",
             server->port, server->groups % DATABASES, server->groups);
}

static void redis_end(void *group)
{
}

/* ---- agent: ---------------------------------------------------------------------------------- */

static void *agent_begin(const char *provider)
{
    struct agent_host *host = calloc(1, sizeof(*host));

    assert_non_null(host);
    *host = (struct agent_host){.program = BATON_PROGRAM, .provider = provider, .lease = "3s"};
    agent_host_begin(host);
    return host;
}

static void *agent_memory_begin(void)
{
    return agent_begin("memory:suite");
}

static void *agent_group_begin(void)
{
    return agent_begin(NULL);
}

static void agent_url(void *group, int number, char *ret, size_t ret_bytes)
{
    const struct agent_host *host = group;

    snprintf(ret, ret_bytes, "%s", host->url);
}

static void agent_end(void *group)
{
    agent_host_end(group);
    free(group);
}

const struct tested_provider tested_providers[] = {
    {"memory", memory_begin, memory_url, memory_end, false, true},
    {"raft", raft_begin, raft_url, raft_end, true, false},
    {"raft-group", raft_begin, named_url, raft_end, true, true},
    {"redis", redis_begin, redis_url, redis_end, true, true},
    {"agent-memory", agent_memory_begin, agent_url, agent_end, true, true},
    {"agent-group", agent_group_begin, agent_url, agent_end, true, true},
    {NULL},
};
