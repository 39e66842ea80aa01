#include "cron/zone.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define VARIABLE "TZ="

static char current[sizeof(VARIABLE) + (size_t)2 * ZONE_NAME_MAX] =
    VARIABLE;                                        /* in the environment */
static char host[ZONE_NAME_MAX] = ":/etc/localtime"; /* $TZ at the start, if it was set */
static char used[ZONE_NAME_MAX];                     /* the zone of `current`; "": the host's */

static void use(const char *name)
{
    (void)snprintf(used, sizeof(used), "%s", name);
    (void)snprintf(current + strlen(VARIABLE), sizeof(current) - strlen(VARIABLE), "%s%s",
                   *name ? ":" : "", *name ? name : host);
    tzset();
}

void zone_begin(void)
{
    const char *given = getenv("TZ");

    if (given && strlen(given) < sizeof(host)) {
        (void)snprintf(host, sizeof(host), "%s", given);
    }
    (void)putenv(current);
    use("");
}

bool zone_exists(const char *name)
{
    const char *folder = getenv("TZDIR");
    char path[256];

    if (strcmp(name, "UTC") == 0 || !*name) {
        return true; /* without tzdata, too */
    }
    for (const char *at = name; *at; at++) {
        if (!isalnum((unsigned char)*at) && !strchr("_+-/", *at)) {
            return false; /* no "..", for one */
        }
    }
    int length =
        snprintf(path, sizeof(path), "%s/%s", folder ? folder : "/usr/share/zoneinfo", name);
    return strlen(name) < ZONE_NAME_MAX - 1 && *name != '/' && length < (int)sizeof(path) &&
           access(path, R_OK) == 0;
}

static int32_t offset(const void *userdata, int64_t at_s)
{
    const char *name = userdata;
    time_t at = (time_t)at_s;
    struct tm local;

    if (strcmp(used, name) != 0) {
        use(name);
    }
    return localtime_r(&at, &local) ? (int32_t)local.tm_gmtoff : 0;
}

struct calendar_zone zone_of(const char *name)
{
    return (struct calendar_zone){.offset = offset, .userdata = name};
}
