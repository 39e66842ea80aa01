#include "server.h"

#include "cmocka_all.h"
#include "lib/process.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void server_pause(void)
{
    struct timespec moment = {.tv_nsec = 5000000};
    (void)nanosleep(&moment, NULL);
}

void server_set(struct server *server, const char *name, const char *value)
{
    assert_true(server->count + 3 < SERVER_WORDS_MAX);
    snprintf(server->texts[server->count], sizeof(server->texts[0]), "--%s", name);
    server->words[server->count] = server->texts[server->count];
    server->count++;
    snprintf(server->texts[server->count], sizeof(server->texts[0]), "%s", value);
    server->words[server->count] = server->texts[server->count];
    server->count++;
}

void server_init(struct server *server)
{
    char port[12];

    /* A server that becomes a replica closes connections, to which hiredis may just write. */
    (void)signal(SIGPIPE, SIG_IGN);
    memset(server, 0, sizeof(*server));
    process_make_folder(server->folder, sizeof(server->folder));
    snprintf(server->socket, sizeof(server->socket), "%s/redis.sock", server->folder);
    server->port = process_free_port();
    server->words[server->count++] = "redis-server";
    snprintf(port, sizeof(port), "%d", server->port);
    server_set(server, "port", port);
    server_set(server, "bind", "127.0.0.1");
    server_set(server, "dir", server->folder);
    server_set(server, "unixsocket", server->socket);
    server_set(server, "save", "");
    server_set(server, "appendonly", "no");
    server_set(server, "logfile", "redis.log");
}

void server_init_sentinel(struct server *server, int master_port, int quorum, const char *more)
{
    FILE *file;

    memset(server, 0, sizeof(*server));
    process_make_folder(server->folder, sizeof(server->folder));
    snprintf(server->socket, sizeof(server->socket), "%s/redis.sock", server->folder);
    server->port = process_free_port();
    server->words[server->count++] = "redis-server"; /* redis-sentinel is a package of its own */
    snprintf(server->texts[server->count], sizeof(server->texts[0]), "%s/sentinel.conf",
             server->folder);
    file = fopen(server->texts[server->count], "w");
    assert_non_null(file);
    fprintf(file,
            "port %d\nbind 127.0.0.1\ndir %s\nunixsocket %s\nlogfile sentinel.log\n"
            "sentinel monitor ours 127.0.0.1 %d %d\n"
            "sentinel down-after-milliseconds ours 500\nsentinel failover-timeout ours 3000\n%s\n",
            server->port, server->folder, server->socket, master_port, quorum, more ? more : "");
    assert_int_equal(fclose(file), 0);
    server->words[server->count] = server->texts[server->count];
    server->count++;
    server->words[server->count++] = "--sentinel";
}

static int server_main(void *userdata)
{
    struct server *server = userdata;

    server->words[server->count] = NULL;
    execvp(server->words[0], server->words);
    return 127;
}

static redisContext *reach(const struct server *server)
{
    redisContext *context = redisConnectUnix(server->socket);

    if (context && context->err != 0) {
        redisFree(context);
        context = NULL;
    }
    return context;
}

static bool is_ready(const struct server *server)
{
    redisContext *context = reach(server);

    if (context) {
        redisFree(context);
    }
    return context != NULL;
}

void server_start(struct server *server)
{
    unlink(server->socket); /* a killed one leaves it behind */
    server->pid = process_fork(server_main, server);
    SERVER_AWAIT(is_ready(server));
}

void server_kill(struct server *server)
{
    if (server->pid > 0) {
        process_end(server->pid);
        server->pid = 0;
    }
}

void server_fini(struct server *server)
{
    server_kill(server);
    if (server->folder[0]) {
        process_remove_folder(server->folder);
    }
}

int server_setup(void **state)
{
    server_init(*state);
    return 0;
}

int server_teardown(void **state)
{
    server_fini(*state);
    return 0;
}

static redisReply *ask(const struct server *server, const char *command, va_list arguments)
{
    redisContext *context = reach(server);
    redisReply *reply = context ? redisvCommand(context, command, arguments) : NULL;

    if (!reply) {
        fail_msg("%s: no answer to %s", server->socket, command);
    }
    redisFree(context);
    return reply;
}

redisReply *server_ask(const struct server *server, const char *command, ...)
{
    va_list arguments;
    redisReply *reply;

    va_start(arguments, command);
    reply = ask(server, command, arguments);
    va_end(arguments);
    return reply;
}

void server_tell(const struct server *server, const char *command, ...)
{
    va_list arguments;
    redisReply *reply;

    va_start(arguments, command);
    reply = ask(server, command, arguments);
    va_end(arguments);
    if (reply->type == REDIS_REPLY_ERROR) {
        fail_msg("%s: %s", command, reply->str);
    }
    freeReplyObject(reply);
}

bool server_says(const struct server *server, const char *command, const char *text)
{
    redisContext *context = reach(server);
    redisReply *reply = context ? redisCommand(context, command) : NULL;
    bool says = reply && reply->str && strstr(reply->str, text);

    for (size_t i = 0; reply && reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
        says = says || (reply->element[i]->str && strstr(reply->element[i]->str, text));
    }
    if (reply) {
        freeReplyObject(reply);
    }
    if (context) {
        redisFree(context);
    }
    return says;
}

long server_number(const struct server *server, const char *command, const char *name)
{
    redisContext *context = reach(server);
    redisReply *reply = context ? redisCommand(context, command) : NULL;
    long number = 0;

    for (size_t i = 0; reply && i + 1 < reply->elements; i += 2) {
        if (reply->element[i]->str && strcmp(reply->element[i]->str, name) == 0) {
            number = strtol(reply->element[i + 1]->str, NULL, 10);
        }
    }
    if (reply) {
        freeReplyObject(reply);
    }
    if (context) {
        redisFree(context);
    }
    return number;
}

void server_history(const struct server *server, char ret[SERVER_HISTORY_BYTES])
{
    redisReply *info = server_ask(server, "INFO replication");
    const char *history = strstr(info->str, "master_replid:");

    assert_non_null(history);
    (void)snprintf(ret, SERVER_HISTORY_BYTES, "%.40s", history + strlen("master_replid:"));
    freeReplyObject(info);
}

void server_trust(const struct server *server, const char *election)
{
    char history[SERVER_HISTORY_BYTES];

    server_history(server, history);
    server_tell(server, "HSET %s:epoch server %s since 0", election, history);
}
