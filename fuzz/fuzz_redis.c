/* Bytes around a Redis server: an address as a user gives it, INFO as the server does, a switch
 * of masters as a Sentinel tells it, a redirection of a cluster, and answers in the protocol. */
#include "net/redis/cluster.h"
#include "net/redis/reader.h"
#include "net/redis/redis.h"
#include "net/redis/sentinel.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static bool is_fine(const struct redis_host *host)
{
    size_t bytes = strnlen(host->host, sizeof(host->host));

    return host->port > 0 && host->port <= 65535 &&
           (bytes == 0 || redis_is_host(host->host, bytes));
}

static void answer(const redisReply *reply)
{
    struct cluster_range range;
    struct baton_error error;
    struct redis_host host;
    const char *channel;
    const char *data;
    size_t bytes;

    (void)redis_fault_error(reply, &error);
    if (redis_parse_message(reply, &channel, &data, &bytes) &&
        (strlen(channel) + bytes > READER_BYTES_MAX || data[bytes])) {
        abort();
    }
    if (sentinel_parse_master(reply, host.host, &host.port) && (!host.host[0] || !is_fine(&host))) {
        abort();
    }
    if (redis_cluster_parse_host(&host, reply) && !is_fine(&host)) {
        abort();
    }
    if (redis_cluster_parse_range(&range, reply) &&
        (range.first > range.last || range.last >= CLUSTER_SLOTS || !is_fine(&range.master))) {
        abort();
    }
}

/* Those in the answers, too: CLUSTER SLOTS is a list of lists. */
static void answers(const uint8_t *data, size_t bytes)
{
    struct redis_reader reader;
    redisReply *reply = NULL;

    if (redis_reader_init(&reader) && redis_reader_feed(&reader, data, bytes)) {
        while (redis_reader_next(&reader, &reply) && reply) {
            answer(reply);
            for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
                answer(reply->element[i]);
            }
            freeReplyObject(reply);
        }
    }
    redis_reader_fini(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct redis_identity identity;
    struct redis_address address;
    char host[REDIS_HOST_MAX];
    int port;
    struct redis_host target;
    unsigned slot;
    char *text = malloc(bytes + 1);

    if (!text) {
        return 0;
    }
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    redis_identity_parse(&identity, (const char *)data, bytes);
    if (redis_address_parse(&address, text, NULL) == BATON_OK &&
        (address.port < 0 || address.port > 65535 ||
         (!address.host[0] && !address.path[0]) != (address.sentinel_count > 0))) {
        abort();
    }
    if (sentinel_parse_switch("s", (const char *)data, bytes, host, &port) &&
        (!host[0] || port <= 0 || port > 65535)) {
        abort();
    }
    if (redis_cluster_parse_redirection((const char *)data, bytes, &slot, &target) &&
        (slot >= CLUSTER_SLOTS || target.port <= 0 || target.port > 65535)) {
        abort();
    }
    if (redis_cluster_slot((const char *)data, bytes) >= CLUSTER_SLOTS) {
        abort();
    }
    answers(data, bytes);
    free(text);
    return 0;
}
