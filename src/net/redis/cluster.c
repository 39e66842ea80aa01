#include "net/redis/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REDIRECTIONS_MAX = 8, TRIES_MAX = 40, AGAIN_MS = 25, ARGUMENTS_MAX = 32, NODES_MAX = 1000 };

/* A request under way. Its arguments are kept until the reply, for a retry on another node. */
struct request {
    struct request *next;
    struct redis_cluster *cluster;
    const struct redis_script *script;
    int key_count, count;
    unsigned slot;
    int redirections, tries;
    bool is_asking;
    redis_reply_cb on_reply;
    void *userdata;
    uint64_t tag;
    instant sent;
    const char *arguments[ARGUMENTS_MAX];
    size_t lengths[ARGUMENTS_MAX];
    char bytes[];
};

struct node {
    struct node *next;
    struct redis_cluster *cluster;
    struct redis_host host;
    struct redis *redis;     /* NULL: no request has needed it yet */
    struct request *waiting; /* requests that wait for the connection */
};

struct redis_cluster {
    struct redis_cluster_options options;
    struct node *nodes;
    struct node *slots[CLUSTER_SLOTS]; /* NULL: requests go to home */
    struct redis_host hosts[CLUSTER_HOSTS_MAX];
    int host_count;
    struct request *again;
    uv_timer_t timer;
    bool is_closing;
    int open_handles;
    void (*closed)(void *userdata);
    void *closed_userdata;
};

static void dispatch(struct request *request, struct node *node);

/* ---- Lists of requests --------------------------------------------------------------------------
 */

static void append(struct request **requests, struct request *request)
{
    while (*requests) {
        requests = &(*requests)->next;
    }
    request->next = NULL;
    *requests = request;
}

static void finish(struct request *request, const redisReply *reply)
{
    request->on_reply(request->userdata, request->tag, reply, request->sent);
    free(request);
}

static void finish_all(struct request **requests)
{
    struct request *request = *requests;

    *requests = NULL;
    while (request) {
        struct request *next = request->next;
        finish(request, NULL);
        request = next;
    }
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static bool is_host(const struct redis_host *one, const char *host, int port)
{
    return one->port == port && strcmp(one->host, host) == 0;
}

static void remember(struct redis_cluster *cluster, const struct redis_host *host)
{
    for (int i = 0; i < cluster->host_count; i++) {
        if (is_host(&cluster->hosts[i], host->host, host->port)) {
            return;
        }
    }
    if (cluster->host_count < CLUSTER_HOSTS_MAX) {
        cluster->hosts[cluster->host_count++] = *host;
    }
}

bool redis_cluster_next_host(const struct redis_cluster *cluster, const struct redis_host *host,
                             struct redis_host *ret)
{
    int at = 0;

    while (at < cluster->host_count && !is_host(&cluster->hosts[at], host->host, host->port)) {
        at++;
    }
    if (cluster->host_count < 2 && at < cluster->host_count) {
        return false;
    }
    if (cluster->host_count == 0) {
        return false;
    }
    *ret = cluster->hosts[(at + 1) % cluster->host_count];
    return true;
}

static void release(struct redis_cluster *cluster)
{
    if (--cluster->open_handles == 0) {
        void (*closed)(void *) = cluster->closed;
        void *userdata = cluster->closed_userdata;
        free(cluster);
        if (closed) {
            closed(userdata);
        }
    }
}

static void on_node_closed(void *userdata)
{
    struct node *node = userdata;
    struct redis_cluster *cluster = node->cluster;

    free(node);
    release(cluster);
}

/* Removes the node from the slots, and answers its waiting requests with NULL. */
static void forget(struct node *node)
{
    struct redis_cluster *cluster = node->cluster;
    struct node **at = &cluster->nodes;

    while (*at != node) {
        at = &(*at)->next;
    }
    *at = node->next;
    for (size_t i = 0; i < CLUSTER_SLOTS; i++) {
        if (cluster->slots[i] == node) {
            cluster->slots[i] = NULL;
        }
    }
    finish_all(&node->waiting);
    if (node->redis) {
        redis_close(node->redis, on_node_closed, node);
    } else {
        free(node);
    }
}

static void on_up(void *userdata, const struct redis_identity *identity)
{
    struct node *node = userdata;
    struct request *request = node->waiting;
    (void)identity;

    node->waiting = NULL;
    while (request) {
        struct request *next = request->next;
        dispatch(request, node);
        request = next;
    }
    node->cluster->options.on_node_up(node->cluster->options.userdata);
}

static void on_down(void *userdata, const struct baton_error *error)
{
    struct node *node = userdata;
    struct redis_cluster *cluster = node->cluster;

    forget(node);
    if (!cluster->is_closing) {
        cluster->options.on_node_down(cluster->options.userdata, error);
    }
}

static int connect_node(struct node *node)
{
    struct redis_cluster *cluster = node->cluster;
    struct redis_options options = cluster->options.redis;
    struct redis_address address = *options.address;
    int r;

    memcpy(address.host, node->host.host, sizeof(address.host));
    address.port = node->host.port;
    address.path[0] = '\0';
    options.address = &address;
    options.callbacks = (struct redis_callbacks){.on_up = on_up, .on_down = on_down};
    options.userdata = node;
    r = redis_open(&node->redis, &options, NULL);
    cluster->open_handles += r == BATON_OK;
    explicit_bzero(&address, sizeof(address));
    return r;
}

static struct node *node_at(struct redis_cluster *cluster, const struct redis_host *host)
{
    struct node *node = cluster->nodes;
    size_t count = 0;

    remember(cluster, host);
    while (node && !is_host(&node->host, host->host, host->port)) {
        node = node->next;
        count++;
    }
    if (!node && count < NODES_MAX && (node = calloc(1, sizeof(*node)))) {
        node->cluster = cluster;
        node->host = *host;
        node->next = cluster->nodes;
        cluster->nodes = node;
    }
    return node;
}

/* ---- Trips ----------------------------------------------------------------------------------- */

static void on_again(uv_timer_t *timer)
{
    struct redis_cluster *cluster = timer->data;
    struct request *request = cluster->again;

    cluster->again = NULL;
    while (request) {
        struct request *next = request->next;
        dispatch(request, cluster->slots[request->slot]);
        request = next;
    }
}

/* Replaces the host "" by that of the node which sent the redirection. */
static void complete_host(const struct request *request, struct redis_host *host)
{
    const struct node *node = request->cluster->slots[request->slot];
    struct redis_host home;

    if (!host->host[0]) {
        redis_where(request->cluster->options.home, &home);
        memcpy(host->host, node ? node->host.host : home.host, sizeof(host->host));
    }
}

static void follow(struct request *request, const redisReply *reply, bool is_asking)
{
    struct redis_host host;
    struct node *node = NULL;
    unsigned slot;

    if (++request->redirections <= REDIRECTIONS_MAX && !request->cluster->is_closing &&
        redis_cluster_parse_redirection(reply->str, (size_t)reply->len, &slot, &host)) {
        complete_host(request, &host);
        node = node_at(request->cluster, &host);
    }
    if (!node) {
        finish(request, reply);
        return;
    }
    if (!is_asking) {
        request->cluster->slots[slot] = node;
    }
    request->is_asking = is_asking;
    dispatch(request, node);
}

static void on_reply(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    struct request *request = userdata;
    struct redis_cluster *cluster = request->cluster;
    enum redis_fault fault = redis_fault_of(reply);
    (void)tag;
    (void)sent;

    if (reply && (fault == REDIS_MOVED || fault == REDIS_ASK)) {
        follow(request, reply, fault == REDIS_ASK);
    } else if (reply && fault == REDIS_TRYAGAIN && ++request->tries < TRIES_MAX &&
               !cluster->is_closing) {
        request->redirections = 0;
        append(&cluster->again, request);
        if (!uv_is_active((uv_handle_t *)&cluster->timer)) {
            (void)uv_timer_start(&cluster->timer, on_again, AGAIN_MS, 0);
        }
    } else {
        finish(request, reply);
    }
}

static void on_asking(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    (void)userdata;
    (void)tag;
    (void)reply; /* if it failed, the next command's reply is an error too */
    (void)sent;
}

static int send_request(struct request *request, struct redis *redis)
{
    const char *asking[] = {"ASKING"};
    bool is_asking = request->is_asking;

    request->is_asking = false;
    if (is_asking) {
        (void)redis_command(redis, 1, asking, NULL, on_asking, NULL, 0);
    }
    return redis_run(redis, request->script, request->key_count, request->count, request->arguments,
                     request->lengths, on_reply, request, 0);
}

/* Sends to the node (NULL: home). False: it cannot be sent. */
static bool try_to_send(struct request *request, struct node *node)
{
    if (!node) {
        return send_request(request, request->cluster->options.home) == BATON_OK;
    }
    if (!node->redis && connect_node(node) != BATON_OK) {
        return false;
    }
    if (!redis_is_up(node->redis)) {
        append(&node->waiting, request);
        return true;
    }
    return send_request(request, node->redis) == BATON_OK;
}

static void dispatch(struct request *request, struct node *node)
{
    if (!try_to_send(request, node)) {
        finish(request, NULL);
    }
}

static struct request *request_new(int count, const char **arguments, const size_t *lengths)
{
    size_t bytes = 0;
    struct request *request;
    char *at;

    for (int i = 0; i < count; i++) {
        bytes += (lengths ? lengths[i] : strlen(arguments[i])) + 1;
    }
    request = malloc(sizeof(*request) + bytes);
    if (!request) {
        return NULL;
    }
    memset(request, 0, sizeof(*request));
    at = request->bytes;
    for (int i = 0; i < count; i++) {
        request->arguments[i] = at;
        request->lengths[i] = lengths ? lengths[i] : strlen(arguments[i]);
        memcpy(at, arguments[i], request->lengths[i]);
        at[request->lengths[i]] = '\0';
        at += request->lengths[i] + 1;
    }
    request->count = count;
    return request;
}

int redis_cluster_run(struct redis_cluster *cluster, const struct redis_script *script,
                      int key_count, int count, const char **arguments, const size_t *lengths,
                      redis_reply_cb reply, void *userdata, uint64_t tag)
{
    struct request *request;

    if (count < 1 || count > ARGUMENTS_MAX || cluster->is_closing) {
        return BATON_EINVAL;
    }
    request = request_new(count, arguments, lengths);
    if (!request) {
        return BATON_ENOMEM;
    }
    request->cluster = cluster;
    request->script = script;
    request->key_count = key_count;
    request->on_reply = reply;
    request->userdata = userdata;
    request->tag = tag;
    request->sent = clock_now();
    request->slot = redis_cluster_slot(request->arguments[0], request->lengths[0]);
    if (!try_to_send(request, cluster->slots[request->slot])) {
        free(request);
        return BATON_EUNAVAILABLE;
    }
    return BATON_OK;
}

struct redis *redis_cluster_node_of(const struct redis_cluster *cluster, const char *key)
{
    const struct node *node = cluster->slots[redis_cluster_slot(key, strlen(key))];

    return node && node->redis && redis_is_up(node->redis) ? node->redis : NULL;
}

int redis_cluster_nodes(const struct redis_cluster *cluster, const struct redis **ret, int max)
{
    int count = 0;

    if (max > 0 && redis_is_up(cluster->options.home)) {
        ret[count++] = cluster->options.home;
    }
    for (const struct node *node = cluster->nodes; node && count < max; node = node->next) {
        if (node->redis && redis_is_up(node->redis)) {
            ret[count++] = node->redis;
        }
    }
    return count;
}

/* ---- Who has which slot ---------------------------------------------------------------------- */

/* A host "" is that of home, which was asked. */
static bool complete(const struct redis_cluster *cluster, struct redis_host *host)
{
    struct redis_host home;

    if (!host->host[0]) {
        redis_where(cluster->options.home, &home);
        memcpy(host->host, home.host, sizeof(host->host));
    }
    return host->host[0] != '\0';
}

static void take_range(struct redis_cluster *cluster, const redisReply *reply)
{
    struct cluster_range range;
    struct redis_host host;
    struct node *node;

    if (!redis_cluster_parse_range(&range, reply) || !complete(cluster, &range.master)) {
        return;
    }
    node = node_at(cluster, &range.master);
    for (unsigned i = range.first; i <= range.last; i++) {
        cluster->slots[i] = node;
    }
    for (size_t i = 3; i < reply->elements && i < CLUSTER_HOSTS_MAX; i++) {
        if (redis_cluster_parse_host(&host, reply->element[i]) && complete(cluster, &host)) {
            remember(cluster, &host);
        }
    }
}

/* If CLUSTER SLOTS is not permitted, the first MOVED of each slot names the node. */
static void on_slots(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    struct redis_cluster *cluster = userdata;
    (void)tag;
    (void)sent;

    for (size_t i = 0; reply && !cluster->is_closing && reply->type == REDIS_REPLY_ARRAY &&
                       i < reply->elements && i < CLUSTER_SLOTS;
         i++) {
        take_range(cluster, reply->element[i]);
    }
}

void redis_cluster_learn(struct redis_cluster *cluster)
{
    const char *arguments[] = {"CLUSTER", "SLOTS"};

    (void)redis_command(cluster->options.home, 2, arguments, NULL, on_slots, cluster, 0);
}

/* ---- Opening and closing --------------------------------------------------------------------- */

void redis_cluster_renew(struct redis_cluster *cluster)
{
    for (struct node *node = cluster->nodes; node; node = node->next) {
        if (node->redis) {
            (void)redis_renew(node->redis, cluster->options.redis.address, NULL);
        }
    }
}

int redis_cluster_open(struct redis_cluster **ret, const struct redis_cluster_options *options)
{
    struct redis_cluster *cluster = calloc(1, sizeof(*cluster));
    struct redis_host first = {.port = options->redis.address->port};

    if (!cluster) {
        return BATON_ENOMEM;
    }
    cluster->options = *options;
    memcpy(first.host, options->redis.address->host, sizeof(first.host));
    if (first.host[0]) {
        remember(cluster, &first);
    }
    (void)uv_timer_init(options->redis.loop, &cluster->timer);
    cluster->timer.data = cluster;
    cluster->open_handles = 1;
    *ret = cluster;
    return BATON_OK;
}

static void on_timer_closed(uv_handle_t *handle)
{
    release(handle->data);
}

void redis_cluster_close(struct redis_cluster *cluster, void (*closed)(void *userdata),
                         void *userdata)
{
    cluster->is_closing = true;
    cluster->closed = closed;
    cluster->closed_userdata = userdata;
    finish_all(&cluster->again);
    while (cluster->nodes) {
        forget(cluster->nodes);
    }
    uv_close((uv_handle_t *)&cluster->timer, on_timer_closed);
}
