#include "cli/bench_etcd.h"

#include "cli/cluster.h"
#include "cli/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORDS_MAX = 16, LOOK_MS = 20, EXIT_NOT_FOUND = 127 };

#define CLIENT_LIBRARY "/usr/share/gocode/src/go.etcd.io/etcd/clientv3"

/* ---- Programs -------------------------------------------------------------------------------- */

/* Runs a program of the PATH in a process group of its own, which dies with this process. The
 * output goes to the file; NULL: nowhere, and its errors neither. Returns 0 on failure. */
static pid_t start(const char *const *words, const char *output)
{
    pid_t pid = fork();

    if (pid == 0) {
        int fd = open(output ? output : "/dev/null", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)setpgid(0, 0); /* Ctrl-C reaches only the benchmark */
        (void)dup2(fd, STDOUT_FILENO);
        if (!output) {
            (void)dup2(fd, STDERR_FILENO);
        }
        (void)execvp(words[0], (char *const *)words);
        _exit(EXIT_NOT_FOUND);
    }
    if (pid > 0) {
        (void)setpgid(pid, pid); /* here as well: it may be killed before it has done so */
    }
    return pid > 0 ? pid : 0;
}

static void end(pid_t *pid)
{
    if (*pid > 0) {
        (void)kill(-*pid, SIGKILL);
        (void)waitpid(*pid, NULL, 0);
        *pid = 0;
    }
}

static int await_end(pid_t pid, const char *what, double *ret_cpu_s, struct baton_error *reterr)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    struct rusage used = {0};
    int status = -1;

    if (pid == 0) {
        return error_set(reterr, BATON_EIO, "%s: cannot be started", what);
    }
    while (wait4(pid, &status, WNOHANG, &used) == 0) {
        if (interrupt_signal()) {
            end(&pid);
            return error_set(reterr, BATON_ECANCELED, "%s: interrupted", what);
        }
        (void)nanosleep(&pause, NULL);
    }
    *ret_cpu_s = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                 (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0
               ? BATON_OK
               : error_set(reterr, BATON_EIO, "%s: ended with %d", what,
                           WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static bool is_on_path(const char *program)
{
    const char *at = getenv("PATH");
    char path[4096];

    while (at && *at) {
        size_t bytes = strcspn(at, ":");
        (void)snprintf(path, sizeof(path), "%.*s/%s", (int)bytes, at, program);
        if (access(path, X_OK) == 0) {
            return true;
        }
        at += bytes + (at[bytes] == ':');
    }
    return false;
}

/* ---- The client ------------------------------------------------------------------------------ */

/* False: `left` is not there. */
static bool is_newer(const char *left, const char *right)
{
    struct stat one, other;

    return stat(left, &one) == 0 &&
           (stat(right, &other) != 0 || one.st_mtim.tv_sec >= other.st_mtim.tv_sec);
}

static int build(const struct bench_etcd *etcd, const char *folder, const char *source,
                 struct baton_error *reterr)
{
    char cache[4300];
    const char *const words[] = {"env",
                                 "GO111MODULE=off",
                                 "GOFLAGS=",
                                 "GOPATH=/usr/share/gocode",
                                 "CGO_ENABLED=0",
                                 cache,
                                 "go",
                                 "build",
                                 "-o",
                                 etcd->program,
                                 source,
                                 NULL};
    double ignored;

    (void)snprintf(cache, sizeof(cache), "GOCACHE=%s/../go-cache", folder);
    (void)fprintf(stderr, "baton bench: building etcd's client, which takes some minutes once\n");
    return await_end(start(words, etcd->output), "building etcd's client", &ignored, reterr);
}

/* In a build tree the client lies beside this program, and its source two folders above. */
static int find_client(struct bench_etcd *etcd, struct baton_error *reterr)
{
    char folder[4096], source[4200];
    ssize_t length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    char *slash;
    bool has_go = is_on_path("go"), has_library = access(CLIENT_LIBRARY, F_OK) == 0;

    folder[length > 0 ? length : 0] = '\0';
    slash = strrchr(folder, '/');
    if (slash) {
        *slash = '\0';
    }
    (void)snprintf(etcd->program, sizeof(etcd->program), "%s/baton-bench-etcd-writes", folder);
    (void)snprintf(source, sizeof(source), "%s/../../bench/etcd_writes/main.go", folder);
    if (is_newer(etcd->program, source)) {
        return BATON_OK;
    }
    if (!has_go || !has_library) {
        return error_set(reterr, BATON_ENOENT,
                         "etcd's client cannot be built: apt-get install%s%s, then run it again",
                         has_go ? "" : " golang-go", has_library ? "" : " golang-etcd-server-dev");
    }
    if (access(source, R_OK) != 0) {
        return error_set(reterr, BATON_ENOENT,
                         "%s: not found; run baton from a build tree, which has its source",
                         etcd->program);
    }
    return build(etcd, folder, source, reterr);
}

/* ---- The servers ----------------------------------------------------------------------------- */

static int start_server(struct bench_etcd *etcd, unsigned number, const char *folder,
                        struct baton_error *reterr)
{
    char name[16], data[96], cluster[256] = "--initial-cluster=", urls[4][96];
    const char *const words[] = {"etcd",  name,    data,    cluster, urls[0],
                                 urls[1], urls[2], urls[3], NULL};

    for (unsigned i = 0; i < BENCH_ETCD_SERVERS; i++) {
        size_t used = strlen(cluster);
        (void)snprintf(cluster + used, sizeof(cluster) - used, "%se%u=http://%s", i ? "," : "", i,
                       etcd->peers[i]);
    }
    (void)snprintf(name, sizeof(name), "--name=e%u", number);
    (void)snprintf(data, sizeof(data), "--data-dir=%s/e%u", folder, number);
    (void)snprintf(urls[0], sizeof(urls[0]), "--listen-peer-urls=http://%s", etcd->peers[number]);
    (void)snprintf(urls[1], sizeof(urls[1]), "--initial-advertise-peer-urls=http://%s",
                   etcd->peers[number]);
    (void)snprintf(urls[2], sizeof(urls[2]), "--listen-client-urls=http://%s",
                   etcd->clients[number]);
    (void)snprintf(urls[3], sizeof(urls[3]), "--advertise-client-urls=http://%s",
                   etcd->clients[number]);
    etcd->pids[number] = start(words, NULL);
    return etcd->pids[number] > 0 ? BATON_OK
                                  : error_set(reterr, BATON_EIO, "etcd: %s", strerror(errno));
}

int bench_etcd_start(struct bench_etcd *etcd, const char *folder, struct baton_error *reterr)
{
    int code = is_on_path("etcd") ? BATON_OK
                                  : error_set(reterr, BATON_ENOENT,
                                              "there is no etcd: apt-get install etcd-server "
                                              "golang-go golang-etcd-server-dev");

    (void)snprintf(etcd->output, sizeof(etcd->output), "%s/etcd.json", folder);
    code = code ? code : find_client(etcd, reterr);
    for (unsigned i = 0; !code && i < BENCH_ETCD_SERVERS; i++) {
        code = cluster_free_address(etcd->peers[i], sizeof(etcd->peers[i]), reterr);
        code =
            code ? code : cluster_free_address(etcd->clients[i], sizeof(etcd->clients[i]), reterr);
    }
    for (unsigned i = 0; !code && i < BENCH_ETCD_SERVERS; i++) {
        code = start_server(etcd, i, folder, reterr);
    }
    return code;
}

void bench_etcd_kill(struct bench_etcd *etcd)
{
    for (unsigned i = 0; i < BENCH_ETCD_SERVERS; i++) {
        end(&etcd->pids[i]);
    }
}

/* ---- The measurement ------------------------------------------------------------------------- */

static double number(const json_t *json, const char *key)
{
    return json_number_value(json_object_get(json, key));
}

int bench_etcd_measure(struct bench_etcd *etcd, struct bench_writes *writes,
                       struct baton_error *reterr)
{
    char endpoints[128], clients[32], bytes[32], warm_up[48], length[48];
    const char *const words[] = {etcd->program, endpoints, clients, bytes, warm_up, length, NULL};
    json_t *json;
    int code;

    (void)snprintf(endpoints, sizeof(endpoints), "-endpoints=%s,%s,%s", etcd->clients[0],
                   etcd->clients[1], etcd->clients[2]);
    (void)snprintf(clients, sizeof(clients), "-clients=%u", writes->clients);
    (void)snprintf(bytes, sizeof(bytes), "-bytes=%u", writes->bytes);
    (void)snprintf(warm_up, sizeof(warm_up), "-warm-up=%lldns", (long long)writes->warm_up.ns);
    (void)snprintf(length, sizeof(length), "-length=%lldns", (long long)writes->length.ns);
    code = await_end(start(words, etcd->output), "etcd's client", &writes->client_cpu_s, reterr);
    if (code) {
        return code;
    }
    json = json_load_file(etcd->output, 0, NULL);
    writes->rate = number(json, "writes_per_s");
    writes->p50_ms = number(json, "p50_ms");
    writes->p99_ms = number(json, "p99_ms");
    json_decref(json);
    return writes->rate > 0 ? BATON_OK
                            : error_set(reterr, BATON_EPROTO, "etcd's client: printed no figure");
}
