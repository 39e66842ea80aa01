/* A `baton agent` of a test, in a folder of its own. */
#ifndef TESTS_PROVIDER_AGENT_HOST_H
#define TESTS_PROVIDER_AGENT_HOST_H

#include <sys/types.h>

struct agent_host {
    const char *program;  /* of baton */
    const char *provider; /* the agent's own; NULL: a group of its own, of one member */
    const char *lease;    /* of its clients: "3s" */
    char folder[128];
    char url[192]; /* "agent:/…" */
    int port;
    pid_t pid;
};

/* Makes the folder, and starts it; it is not waited for. */
void agent_host_begin(struct agent_host *host);
/* Starts it anew after agent_host_kill(), on the same data. */
void agent_host_start(struct agent_host *host);
void agent_host_kill(struct agent_host *host);
void agent_host_end(struct agent_host *host);

#endif
