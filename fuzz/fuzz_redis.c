/* Bytes around a Redis server: an address as a user gives it, INFO as the server does, a switch
 * of masters as a Sentinel tells it, a redirection of a cluster, and answers in the protocol. */
#include "net/redis/cluster.h"
#include "net/redis/reader.h"
#include "net/redis/redis.h"
#include "net/redis/sentinel.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void answers(const uint8_t *data, size_t bytes)
{
    struct redis_reader reader;
    struct baton_error error;
    redisReply *reply = NULL;

    if (redis_reader_init(&reader) && redis_reader_feed(&reader, data, bytes)) {
        while (redis_reader_next(&reader, &reply) && reply) {
            if (redis_fault_of(reply) != REDIS_FINE) {
                (void)redis_fault_error(reply, &error);
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
