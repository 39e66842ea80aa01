#include "net/redis/sentinel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool take_port(const char *text, int *ret)
{
    char *end;
    long port = strtol(text, &end, 10);

    *ret = (int)port;
    return *text >= '0' && *text <= '9' && !*end && port > 0 && port <= 65535;
}

bool sentinel_parse_switch(const char *service, const char *text, size_t bytes,
                           char ret_host[REDIS_HOST_MAX], int *ret_port)
{
    char copy[REDIS_SERVICE_MAX + 2 * REDIS_HOST_MAX + 32];
    char *rest = copy;
    char *fields[5];

    if (bytes >= sizeof(copy) || (bytes > 0 && memchr(text, '\0', bytes))) {
        return false;
    }
    (void)snprintf(copy, sizeof(copy), "%.*s", (int)bytes, text);
    for (size_t i = 0; i < 5; i++) {
        fields[i] = strsep(&rest, " ");
        if (!fields[i]) {
            return false;
        }
    }
    if (rest || strcmp(fields[0], service) != 0 || !redis_is_host(fields[3], strlen(fields[3])) ||
        !take_port(fields[4], ret_port)) {
        return false;
    }
    (void)snprintf(ret_host, REDIS_HOST_MAX, "%s", fields[3]);
    return true;
}

bool sentinel_parse_master(const redisReply *reply, char ret_host[REDIS_HOST_MAX], int *ret_port)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[0]->type != REDIS_REPLY_STRING ||
        reply->element[1]->type != REDIS_REPLY_STRING ||
        !redis_is_host(reply->element[0]->str, (size_t)reply->element[0]->len) ||
        !take_port(reply->element[1]->str, ret_port)) {
        return false;
    }
    (void)snprintf(ret_host, REDIS_HOST_MAX, "%s", reply->element[0]->str);
    return true;
}
