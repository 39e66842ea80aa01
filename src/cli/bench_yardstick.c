#include "cli/bench_yardstick.h"

#include "provider/redis/scripts.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CONNECT_S = 5, KEYS_A_CALL = 1000, FIRST_REQUESTS = 20000, OUTPUT_MAX = 64 * 1024 };

#define OURS   "baton-bench:ours:"
#define THEIRS "baton-bench:theirs:"
#define HOLDER "00000000-0000-4000-8000-000000000000"
#define EPOCH  "1795243031863" /* as long as a real epoch, which is a time in ms */
#define LEASE  "3600000"

extern char **environ;

void yardstick_election(unsigned number, char ret[64])
{
    (void)snprintf(ret, 64, OURS "%012u", number);
}

/* ---- Keys ------------------------------------------------------------------------------------ */

/* Arguments: from, to, holder, epoch, lease. Our elections get the record of a server that has run
 * for long, so that it grants locks at once. */
static const char lay_out[] =
    "local history = string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)')\n"
    "for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do\n"
    "  local ours = string.format('" OURS "%012d', i)\n"
    "  local theirs = string.format('" THEIRS "%012d', i)\n"
    "  redis.call('HSET', ours .. ':epoch', 'server', history, 'since', '0')\n"
    "  redis.call('SET', theirs .. ':master', ARGV[3], 'PX', ARGV[5])\n"
    "  redis.call('HSET', theirs .. ':epoch', 'epoch', ARGV[4], 'holder', ARGV[3],\n"
    "    'server', history, 'since', '0')\n"
    "end\n"
    "return 1\n";

static const char remove_keys[] =
    "for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do\n"
    "  for _, name in ipairs({string.format('" OURS "%012d', i),\n"
    "                         string.format('" THEIRS "%012d', i)}) do\n"
    "    redis.call('DEL', name .. ':master', name .. ':heartbeat', name .. ':epoch',\n"
    "      name .. ':processes', name .. ':processes:expiry', name .. ':channels',\n"
    "      name .. ':slaves', name .. ':master_process')\n"
    "  end\n"
    "end\n"
    "return 1\n";

static int took(struct yardstick *yardstick, redisReply *reply, int type, const char *what,
                struct baton_error *reterr)
{
    bool is_right = reply && reply->type == type;
    const char *reason = reply && reply->type == REDIS_REPLY_ERROR ? reply->str
                         : yardstick->connection->err              ? yardstick->connection->errstr
                                                                   : "not the answer it should be";
    int r = is_right ? BATON_OK : error_set(reterr, BATON_EUNAVAILABLE, "%s: %.200s", what, reason);

    if (reply) {
        freeReplyObject(reply);
    }
    return r;
}

static int for_all(struct yardstick *yardstick, const char *script, int type,
                   struct baton_error *reterr)
{
    int r = BATON_OK;

    for (unsigned from = 0; r == BATON_OK && from < yardstick->elections; from += KEYS_A_CALL) {
        unsigned to = from + KEYS_A_CALL <= yardstick->elections ? from + KEYS_A_CALL - 1
                                                                 : yardstick->elections - 1;
        r = took(yardstick,
                 redisCommand(yardstick->connection, "EVAL %s 0 %u %u " HOLDER " " EPOCH " " LEASE,
                              script, from, to),
                 type, "the keys of a benchmark", reterr);
    }
    return r;
}

static int load(struct yardstick *yardstick, struct baton_error *reterr)
{
    struct redis_script scripts[SCRIPT_COUNT];
    redisReply *reply;

    scripts_fill(scripts);
    reply =
        redisCommand(yardstick->connection, "SCRIPT LOAD %s", (char *)scripts[SCRIPT_RENEW].text);
    if (reply && reply->type == REDIS_REPLY_STRING) {
        (void)snprintf(yardstick->sha, sizeof(yardstick->sha), "%s", reply->str);
    }
    return took(yardstick, reply, REDIS_REPLY_STRING, "SCRIPT LOAD", reterr);
}

/* ---- The connection -------------------------------------------------------------------------- */

static int greet(struct yardstick *yardstick, struct baton_error *reterr)
{
    const struct redis_address *address = &yardstick->address;
    int r = BATON_OK;

    if (address->password[0]) {
        redisReply *reply = address->user[0]
                                ? redisCommand(yardstick->connection, "AUTH %s %s", address->user,
                                               address->password)
                                : redisCommand(yardstick->connection, "AUTH %s", address->password);
        r = took(yardstick, reply, REDIS_REPLY_STATUS, "AUTH", reterr);
    }
    if (r == BATON_OK && address->database > 0) {
        r = took(yardstick, redisCommand(yardstick->connection, "SELECT %d", address->database),
                 REDIS_REPLY_STATUS, "SELECT", reterr);
    }
    return r;
}

int yardstick_open(struct yardstick *yardstick, const char *url, unsigned elections,
                   struct baton_error *reterr)
{
    struct redis_address *address = &yardstick->address;
    struct timeval limit = {.tv_sec = CONNECT_S};
    char name[REDIS_HOST_MAX];
    int r = redis_address_parse(address, url, reterr);

    yardstick->elections = elections;
    if (r != BATON_OK) {
        return r;
    }
    redis_address_name(address, name, sizeof(name));
    if (address->is_tls || (!address->host[0] && !address->path[0])) {
        return error_set(reterr, BATON_ENOTSUP,
                         "--url %s: is measured on one server in the clear only: redis:// or "
                         "unix://",
                         name);
    }
    yardstick->connection = address->path[0]
                                ? redisConnectUnixWithTimeout(address->path, limit)
                                : redisConnectWithTimeout(address->host, address->port, limit);
    if (!yardstick->connection || yardstick->connection->err) {
        return error_set(reterr, BATON_EUNAVAILABLE, "Redis at %s: %s", name,
                         yardstick->connection ? yardstick->connection->errstr : "out of memory");
    }
    r = greet(yardstick, reterr);
    r = r == BATON_OK ? load(yardstick, reterr) : r;
    return r == BATON_OK ? for_all(yardstick, lay_out, REDIS_REPLY_INTEGER, reterr) : r;
}

void yardstick_close(struct yardstick *yardstick)
{
    struct baton_error ignored;

    if (yardstick->connection) {
        (void)for_all(yardstick, remove_keys, REDIS_REPLY_INTEGER, &ignored);
        redisFree(yardstick->connection);
        yardstick->connection = NULL;
    }
}

/* ---- redis-benchmark ------------------------------------------------------------------------- */

const char *yardstick_obstacle(const struct yardstick *yardstick)
{
    return yardstick->address.password[0]
               ? "redis-benchmark takes a password only where all users of this machine can read it"
               : NULL;
}

static pid_t start(char *const *argv, int *ret_output)
{
    posix_spawn_file_actions_t actions;
    int ends[2];
    pid_t pid = 0;
    int r;

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return 0;
    }
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    (void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    r = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[1]);
    *ret_output = ends[0];
    if (r != 0) {
        (void)close(ends[0]);
        return 0;
    }
    return pid;
}

/* Returns the second column of the last line of the CSV output; 0: there is none. */
static double read_rate(int output)
{
    char *text = calloc(1, OUTPUT_MAX);
    size_t used = 0;
    ssize_t got;
    double rate = 0;

    while (text && used < OUTPUT_MAX - 1 &&
           (got = read(output, text + used, OUTPUT_MAX - 1 - used)) > 0) {
        used += (size_t)got;
    }
    for (char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *column = strstr(line, "\",\"");
        rate = column ? strtod(column + 3, NULL) : rate;
    }
    free(text);
    return rate;
}

/* Whole pipelines: after one request more than it was told, redis-benchmark may end with an error.
 */
static int run(const struct yardstick *yardstick, unsigned depth, unsigned long pipelines,
               double *ret_rate, struct baton_error *reterr)
{
    const struct redis_address *address = &yardstick->address;
    static const char *const parts[] = {"master", "heartbeat", "epoch"};
    char keys[3][64];
    char numbers[5][24];
    bool is_local = address->path[0] != '\0';
    (void)snprintf(numbers[0], sizeof(numbers[0]), "%d", address->port);
    (void)snprintf(numbers[1], sizeof(numbers[1]), "%d", address->database);
    (void)snprintf(numbers[2], sizeof(numbers[2]), "%u", depth);
    (void)snprintf(numbers[3], sizeof(numbers[3]), "%lu", pipelines * depth);
    (void)snprintf(numbers[4], sizeof(numbers[4]), "%u", yardstick->elections);
    for (size_t i = 0; i < 3; i++) { /* redis-benchmark replaces the middle part by a number */
        (void)snprintf(keys[i], sizeof(keys[i]), THEIRS "__rand_int__:%s", parts[i]);
    }
    /* posix_spawn(3) declares argv as writable, but does not change it. */
    const char *argv[] = {"redis-benchmark",
                          is_local ? "-s" : "-h",
                          is_local ? address->path : address->host,
                          "-p",
                          numbers[0],
                          "--dbnum",
                          numbers[1],
                          "-c",
                          "1",
                          "-P",
                          numbers[2],
                          "-n",
                          numbers[3],
                          "-r",
                          numbers[4],
                          "--csv",
                          "EVALSHA",
                          yardstick->sha,
                          "3",
                          keys[0],
                          keys[1],
                          keys[2],
                          HOLDER,
                          LEASE,
                          EPOCH,
                          "",
                          LEASE,
                          "",
                          NULL};
    int output;
    int status = -1;
    pid_t pid = start((char *const *)argv, &output);

    if (pid == 0) {
        return error_set(reterr, BATON_ENOENT, "redis-benchmark: cannot be started; is it there?");
    }
    *ret_rate = read_rate(output);
    (void)close(output);
    (void)waitpid(pid, &status, 0);
    return *ret_rate > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0
               ? BATON_OK
               : error_set(reterr, BATON_EPROTO, "redis-benchmark: ended with %d, and no figure",
                           WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

int yardstick_measure(const struct yardstick *yardstick, unsigned depth, double seconds,
                      double *ret_rate, struct baton_error *reterr)
{
    unsigned long first = depth > FIRST_REQUESTS / 4 ? 4 : FIRST_REQUESTS / depth;
    int r = run(yardstick, depth, first, ret_rate, reterr);

    return r == BATON_OK ? run(yardstick, depth, (unsigned long)(*ret_rate * seconds / depth) + 1,
                               ret_rate, reterr)
                         : r;
}
