#include "fleet/workers/claim.h"

#include "base/error.h"

#include <stdio.h>

enum { KEY_MAX = sizeof("assigned/") + FLEET_WORKER_ID_MAX };

static void on_put(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    struct claim *claim = userdata;
    enum claim_mark written = claim->writing;

    (void)revision;
    (void)error;
    claim->writing = CLAIM_NONE;
    if (code == BATON_OK && !claim->is_late) {
        claim->stored = written;
    }
    if (code == BATON_OK || code == BATON_ECONFLICT) {
        claim_step(claim);
    }
    if (claim->writing == CLAIM_NONE) {
        claim->on_settled(claim);
    }
}

void claim_step(struct claim *claim)
{
    const struct fleet_assigned *before;
    struct fleet_assigned after = {0};
    char key[KEY_MAX];
    json_t *json;

    if (claim->writing != CLAIM_NONE || claim->wanted == claim->stored) {
        return;
    }
    before = fleet_state_assigned(claim->state, claim->worker);
    if (before != NULL) {
        after = *before;
    }
    after.is_online = claim->wanted == CLAIM_ONLINE;
    json = fleet_assigned_json(&after);
    (void)snprintf(key, sizeof(key), "assigned/%s", claim->worker);
    claim->writing = claim->wanted;
    claim->is_late = false;
    if (json == NULL || fleet_state_put_json(claim->state, key, json, after.revision, on_put, claim,
                                             NULL) != BATON_OK) {
        claim->writing = CLAIM_NONE;
    }
    json_decref(json);
}

void claim_set(struct claim *claim, enum claim_mark wanted)
{
    claim->wanted = wanted;
    claim->stored = CLAIM_NONE;
    claim->is_late = true;
    claim_step(claim);
}

bool claim_is_online(const struct claim *claim)
{
    return claim->stored == CLAIM_ONLINE;
}

bool claim_is_busy(const struct claim *claim)
{
    return claim->writing != CLAIM_NONE;
}
