#include "fleet/workers/claim.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>

enum { KEY_MAX = sizeof("assigned/") + FLEET_WORKER_ID_MAX };

struct claim_write {
    struct claim *claim; /* NULL: it has ended */
    enum claim_mark mark;
};

static void on_put(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    struct claim_write *write = userdata;
    struct claim *claim = write->claim;

    (void)revision;
    (void)error;
    if (claim != NULL) {
        claim->write = NULL;
        if (code == BATON_OK && !claim->is_late) {
            claim->stored = write->mark;
        }
    }
    free(write);
    if (claim != NULL && (code == BATON_OK || code == BATON_ECONFLICT)) {
        claim->on_settled(claim);
    }
}

void claim_step(struct claim *claim)
{
    const struct fleet_assigned *before;
    struct fleet_assigned after = {0};
    struct claim_write *write;
    char key[KEY_MAX];
    json_t *json;

    if (claim->write != NULL || claim->wanted == claim->stored) {
        return;
    }
    before = fleet_state_assigned(claim->state, claim->worker);
    if (before != NULL) {
        after = *before;
    }
    after.is_online = claim->wanted == CLAIM_ONLINE;
    json = fleet_assigned_json(&after);
    write = malloc(sizeof(*write));
    if (json == NULL || write == NULL) {
        json_decref(json);
        free(write);
        return;
    }
    *write = (struct claim_write){claim, claim->wanted};
    (void)snprintf(key, sizeof(key), "assigned/%s", claim->worker);
    claim->write = write;
    claim->is_late = false;
    if (fleet_state_put_json(claim->state, key, json, after.revision, on_put, write, NULL) !=
        BATON_OK) {
        claim->write = NULL;
        free(write);
    }
    json_decref(json);
}

void claim_set(struct claim *claim, enum claim_mark wanted)
{
    claim->wanted = wanted;
    claim->stored = CLAIM_NONE;
    claim->is_late = true;
}

void claim_fini(struct claim *claim)
{
    if (claim->write != NULL) {
        claim->write->claim = NULL;
        claim->write = NULL;
    }
}

bool claim_is_online(const struct claim *claim)
{
    return claim->stored == CLAIM_ONLINE;
}
