#include "net/redis/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CRC-16/XMODEM, as the Redis Cluster specification demands. */
static unsigned crc16(const char *data, size_t bytes)
{
    unsigned crc = 0;

    for (size_t i = 0; i < bytes; i++) {
        crc ^= (unsigned)(unsigned char)data[i] << 8;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
        }
        crc &= 0xffff;
    }
    return crc;
}

unsigned redis_cluster_slot(const char *key, size_t bytes)
{
    const char *open = memchr(key, '{', bytes);
    const char *close = open ? memchr(open, '}', bytes - (size_t)(open - key)) : NULL;

    if (close && close > open + 1) {
        key = open + 1;
        bytes = (size_t)(close - key);
    }
    return crc16(key, bytes) % CLUSTER_SLOTS;
}

bool redis_cluster_parse_redirection(const char *text, size_t bytes, unsigned *ret_slot,
                                     struct redis_host *ret)
{
    char copy[REDIS_HOST_MAX + 40];
    char *rest = copy;
    char *host;
    char *colon;
    char *end;
    unsigned long slot;
    long port;

    if (bytes >= sizeof(copy) || (bytes > 0 && memchr(text, '\0', bytes))) {
        return false;
    }
    (void)snprintf(copy, sizeof(copy), "%.*s", (int)bytes, text);
    host = strsep(&rest, " ");
    if (strcmp(host, "MOVED") != 0 && strcmp(host, "ASK") != 0) {
        return false;
    }
    slot = rest && *rest >= '0' && *rest <= '9' ? strtoul(rest, &rest, 10) : CLUSTER_SLOTS;
    if (slot >= CLUSTER_SLOTS || *rest != ' ') {
        return false;
    }
    host = rest + 1;
    colon = strrchr(host, ':');
    if (!colon || colon[1] < '0' || colon[1] > '9' || colon - host >= REDIS_HOST_MAX) {
        return false;
    }
    port = strtol(colon + 1, &end, 10);
    if ((*end && *end != ' ') || port <= 0 || port > 65535) {
        return false;
    }
    *colon = '\0';
    if (*host && !redis_is_host(host, strlen(host))) {
        return false;
    }
    *ret_slot = (unsigned)slot;
    ret->port = (int)port;
    /* "?": the node does not know its own name. */
    (void)snprintf(ret->host, sizeof(ret->host), "%s", strcmp(host, "?") == 0 ? "" : host);
    return true;
}

bool redis_cluster_parse_host(struct redis_host *ret, const redisReply *reply)
{
    const redisReply *name;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 2 ||
        reply->element[1]->type != REDIS_REPLY_INTEGER || reply->element[1]->integer <= 0 ||
        reply->element[1]->integer > 65535) {
        return false;
    }
    name = reply->element[0];
    ret->host[0] = '\0';
    ret->port = (int)reply->element[1]->integer;
    if (name->type == REDIS_REPLY_NIL || (name->type == REDIS_REPLY_STRING && name->len == 0)) {
        return true;
    }
    if (name->type != REDIS_REPLY_STRING || !redis_is_host(name->str, (size_t)name->len)) {
        return false;
    }
    (void)snprintf(ret->host, sizeof(ret->host), "%s",
                   strcmp(name->str, "?") == 0 ? "" : name->str);
    return true;
}

bool redis_cluster_parse_range(struct cluster_range *ret, const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 3 ||
        reply->element[0]->type != REDIS_REPLY_INTEGER ||
        reply->element[1]->type != REDIS_REPLY_INTEGER || reply->element[0]->integer < 0 ||
        reply->element[1]->integer >= CLUSTER_SLOTS ||
        reply->element[0]->integer > reply->element[1]->integer) {
        return false;
    }
    ret->first = (unsigned)reply->element[0]->integer;
    ret->last = (unsigned)reply->element[1]->integer;
    return redis_cluster_parse_host(&ret->master, reply->element[2]);
}
