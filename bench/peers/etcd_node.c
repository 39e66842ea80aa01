/* One member of an etcd cluster, for `baton bench --provider etcd`.
 *
 *   baton-bench-etcd SLOT NODES ACT-FILE DATA default ADDRESS...
 *
 * Runs the distribution's etcd with its default times, reads its log, and stamps in the act file
 * when the log says that the member became leader, or no longer is. The client's port is the peer's
 * plus 1000 (less 1000 near the top). SIGUSR1 moves leadership with etcdctl.
 */
#include "cli/act.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { ARGUMENT_BYTES = 1024, NODES_MAX = 9 };

static char ask_move[2 * ARGUMENT_BYTES];
static volatile sig_atomic_t is_asked;

static int client_port(const char *address)
{
    int port = (int)strtol(strrchr(address, ':') + 1, NULL, 10);
    return port < 64000 ? port + 1000 : port - 1000;
}

static void run_etcd(char **argv, unsigned slot, unsigned nodes, int log)
{
    char name[32];
    char cluster[ARGUMENT_BYTES] = "--initial-cluster=";
    char listen_peer[64];
    char advertise_peer[64];
    char listen_client[64];
    char advertise_client[64];
    char data[256];
    for (unsigned i = 0; i < nodes; i++) {
        size_t used = strlen(cluster);
        (void)snprintf(cluster + used, sizeof(cluster) - used, "%sn%u=http://%s", i ? "," : "", i,
                       argv[6 + i]);
    }
    int port = client_port(argv[6 + slot]);
    (void)snprintf(name, sizeof(name), "--name=n%u", slot);
    (void)snprintf(data, sizeof(data), "--data-dir=%s", argv[4]);
    (void)snprintf(listen_peer, sizeof(listen_peer), "--listen-peer-urls=http://%s",
                   argv[6 + slot]);
    (void)snprintf(advertise_peer, sizeof(advertise_peer),
                   "--initial-advertise-peer-urls=http://%s", argv[6 + slot]);
    (void)snprintf(listen_client, sizeof(listen_client), "--listen-client-urls=http://127.0.0.1:%d",
                   port);
    (void)snprintf(advertise_client, sizeof(advertise_client),
                   "--advertise-client-urls=http://127.0.0.1:%d", port);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)dup2(log, STDERR_FILENO);
    (void)dup2(log, STDOUT_FILENO);
    execlp("etcd", "etcd", name, data, listen_peer, advertise_peer, listen_client, advertise_client,
           cluster, (char *)NULL);
    _exit(127);
}

/* Moves leadership to the next member: its id is asked of itself. */
static void prepare_move(char **argv, unsigned slot, unsigned nodes)
{
    int self = client_port(argv[6 + slot]);
    int heir = client_port(argv[6 + (slot + 1) % nodes]);
    (void)snprintf(ask_move, sizeof(ask_move),
                   "id=$(etcdctl --endpoints=127.0.0.1:%d endpoint status | cut -d, -f2) && "
                   "etcdctl --endpoints=127.0.0.1:%d move-leader $id >/dev/null &",
                   heir, self);
}

static void on_user_signal(int number)
{
    (void)number;
    is_asked = 1;
}

static void read_log(FILE *log, struct act *act, unsigned slot)
{
    char line[8192];
    bool is_leader = false;
    for (;;) {
        char *got = fgets(line, sizeof(line), log);
        instant at = clock_now();
        if (is_asked) {
            is_asked = 0;
            if (system(ask_move) != 0) {
                return;
            }
        }
        if (!got && errno == EINTR) {
            clearerr(log);
            errno = 0;
            continue;
        }
        if (!got) {
            return;
        }
        const char *term = strstr(line, "became leader at term ");
        if (term) {
            is_leader = true;
            act_stamp_acquired(act, slot, strtoull(term + 22, NULL, 10), at);
        } else if (is_leader && strstr(line, "became follower at term ")) {
            is_leader = false;
            act_stamp_lost(act, slot, at);
        }
    }
}

int main(int argc, char **argv)
{
    struct act *act = NULL;
    int pipes[2];
    struct sigaction action = {.sa_handler = on_user_signal}; /* no SA_RESTART: fgets must wake */
    unsigned nodes = argc > 5 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    unsigned slot = argc > 5 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    if (nodes == 0 || nodes > NODES_MAX || argc != (int)nodes + 6 || slot >= nodes) {
        (void)fprintf(stderr, "usage: %s SLOT NODES ACT-FILE DATA default ADDRESS...\n", argv[0]);
        return 64;
    }
    if (act_open(&act, argv[3], NULL) || pipe(pipes) != 0) {
        return 1;
    }
    prepare_move(argv, slot, nodes);
    (void)sigaction(SIGUSR1, &action, NULL);
    pid_t pid = fork();
    if (pid == 0) {
        run_etcd(argv, slot, nodes, pipes[1]);
    }
    close(pipes[1]);
    FILE *log = pid > 0 ? fdopen(pipes[0], "r") : NULL;
    if (!log) {
        return 1;
    }
    read_log(log, act, slot);
    return 1;
}
