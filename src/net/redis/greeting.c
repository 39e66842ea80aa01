/* Formats a connection's first commands for a caller without a connection of this library. */
#include "net/redis/redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int append(char **text, size_t *bytes, int count, const char **arguments)
{
    char *command = NULL;
    int length = (int)redisFormatCommandArgv(&command, count, arguments, NULL);
    char *longer = length > 0 ? realloc(*text, *bytes + (size_t)length) : NULL;

    if (longer) {
        memcpy(longer + *bytes, command, (size_t)length);
        *text = longer;
        *bytes += (size_t)length;
    }
    if (command) {
        explicit_bzero(command, strlen(command));
        redisFreeCommand(command);
    }
    return longer ? BATON_OK : BATON_ENOMEM;
}

int redis_greeting(const struct redis_address *address, char **ret, size_t *ret_bytes)
{
    char number[12];
    const char *auth[] = {"AUTH", address->user[0] ? address->user : address->password,
                          address->password};
    const char *select[] = {"SELECT", number};
    char *text = NULL;
    size_t bytes = 0;
    int r = BATON_OK;

    (void)snprintf(number, sizeof(number), "%d", address->database);
    if (address->password[0]) {
        r = append(&text, &bytes, address->user[0] ? 3 : 2, auth);
    }
    if (r == BATON_OK && address->database > 0) {
        r = append(&text, &bytes, 2, select);
    }
    if (r != BATON_OK) {
        free(text);
        return r;
    }
    *ret = text;
    *ret_bytes = bytes;
    return BATON_OK;
}
