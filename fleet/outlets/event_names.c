#include "fleet/outlets/event_names.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char *const all[] = {
    "camera-offline",     "camera-online",   "worker-offline",    "worker-online",
    "not-placed",         "detection",       "connection-failed", "discovery-failed",
    "election-failed",    "leader-changed",  "master-failed",     "master-superseded",
    "member-joined",      "member-left",     "message-refused",   "model-url-missing",
    "process-twice",      "session-changed", "stage-changed",     "worker-in-sync",
    "worker-not-in-sync", "worker-owned",    "worker-released",
};

enum { EVENTS = sizeof(all) / sizeof(all[0]) };

_Static_assert(EVENTS <= 32, "each event has a bit of the set");

/* 0: it is none. */
static event_names find(const char *name, size_t bytes)
{
    for (size_t i = 0; i < EVENTS; i++) {
        if (strlen(all[i]) == bytes && memcmp(all[i], name, bytes) == 0) {
            return (event_names)1 << i;
        }
    }
    return 0;
}

static int refuse(const char *name, size_t bytes, struct baton_error *reterr)
{
    char names[512];
    size_t used = 0;

    for (size_t i = 0; i < EVENTS && used < sizeof(names); i++) {
        used +=
            (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i > 0 ? ", " : "", all[i]);
    }
    return error_set(reterr, BATON_EINVAL, "'%.*s' is no event; there are: %s",
                     (int)(bytes < 40 ? bytes : 40), name, names);
}

int event_names_parse(event_names *ret, const char *text, struct baton_error *reterr)
{
    event_names names = 0;

    while (*text != '\0') {
        size_t bytes = strcspn(text, ",");
        event_names found = find(text, bytes);

        if (found == 0) {
            return refuse(text, bytes, reterr);
        }
        names |= found;
        text += bytes + (text[bytes] == ',');
    }
    *ret = names;
    return BATON_OK;
}

bool event_names_have(event_names names, const char *name)
{
    return (names & find(name, strlen(name))) != 0;
}
