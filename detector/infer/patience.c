#include "detector/infer/patience.h"

struct waiting *patience_find(struct patience *patience, size_t stage, uint64_t track)
{
    for (int i = 0; i < patience->count; i++) {
        if (patience->all[i].stage == stage && patience->all[i].track == track) {
            return &patience->all[i];
        }
    }
    return NULL;
}

void patience_forget(struct patience *patience, struct waiting *waiting)
{
    json_decref(waiting->attributes);
    *waiting = patience->all[--patience->count];
}

bool patience_hold(struct patience *patience, size_t stage, const struct box *box, uint64_t track,
                   json_t *attributes)
{
    struct waiting *waiting = patience_find(patience, stage, track);

    if (waiting && waiting->tries >= PATIENCE_TRIES) {
        patience_forget(patience, waiting);
        return false;
    }
    if (!waiting) {
        if (patience->count == PATIENCE_MAX) {
            return false;
        }
        waiting = &patience->all[patience->count++];
        *waiting =
            (struct waiting){.stage = stage, .track = track, .attributes = json_incref(attributes)};
    }
    waiting->box = *box;
    waiting->tries++;
    waiting->unseen = 0;
    waiting->is_here = true;
    return true;
}

struct waiting *patience_lost(struct patience *patience)
{
    for (int i = 0; i < patience->count; i++) {
        if (patience->all[i].unseen >= PATIENCE_UNSEEN) {
            return &patience->all[i];
        }
    }
    return NULL;
}

void patience_tick(struct patience *patience)
{
    for (int i = 0; i < patience->count; i++) {
        patience->all[i].unseen += !patience->all[i].is_here;
        patience->all[i].is_here = false;
    }
}

void patience_fini(struct patience *patience)
{
    while (patience->count > 0) {
        patience_forget(patience, &patience->all[0]);
    }
}
