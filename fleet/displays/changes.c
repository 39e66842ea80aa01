/* Changes of one display's data: they wait, are merged, and written together.
 *
 *   change_add ─▶ waiting ─▶ merge ─▶ written ── put ──▶ done
 *                   ▲                    │
 *                   └──── conflict ◀─────┘
 */
#include "fleet/displays/displays_int.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>

enum { KEY_MAX = sizeof("data/") + FLEET_ID_MAX };

static const json_t *data_of(const struct record *record, uint64_t *ret_revision)
{
    *ret_revision = 0;
    return fleet_state_data(record->displays->config.state, record->id, ret_revision);
}

static void end(struct record *record, struct change *change, int code,
                const struct baton_error *error)
{
    record->change_count--;
    record->displays->counters.failures += code != BATON_OK;
    if (change->done != NULL) {
        change->done(change->userdata, code, error);
    }
    json_decref(change->patch);
    free(change);
}

static void end_all(struct record *record, struct change **changes, int code,
                    const struct baton_error *error)
{
    struct change *change;

    while ((change = *changes) != NULL) {
        LL_DELETE(*changes, change);
        end(record, change, code, error);
    }
}

void changes_cancel(struct record *record)
{
    struct baton_error error;

    (void)error_set(&error, BATON_ECANCELED, "display \"%.64s\": this process stops", record->id);
    end_all(record, &record->waiting, BATON_ECANCELED, &error);
}

/* ---- Merging --------------------------------------------------------------------------------- */

/* Whether the change applies: BATON_OK and *ret_applies, or why it fails. */
static int judge(const struct record *record, const struct change *change, const json_t *data,
                 bool *ret_applies, struct baton_error *reterr)
{
    struct session_id session = display_session_of(data);
    bool is_known = displays_has(record->displays, record->id);
    bool is_in = !change->only_in.is_set || (session.is_set && session.id == change->only_in.id);

    *ret_applies = is_known && is_in;
    if (*ret_applies || (change->only_in.is_set && change->otherwise == BATON_OK)) {
        return BATON_OK;
    }
    return is_known ? error_set(reterr, BATON_ENOENT, "session %lld has ended",
                                (long long)change->only_in.id)
                    : error_set(reterr, BATON_ENOENT, "display \"%.64s\" was deleted", record->id);
}

/* Merges what waits into *merged, in its order, and moves it to `written`; what does not apply or
 * cannot be merged ends. */
static void merge_waiting(struct record *record, json_t **merged)
{
    struct change *change;

    while ((change = record->waiting) != NULL) {
        struct baton_error error = {0};
        json_t *next = NULL;
        bool applies;
        int code = judge(record, change, *merged, &applies, &error);

        LL_DELETE(record->waiting, change);
        if (code == BATON_OK && applies) {
            code = display_merge(&next, *merged, change->patch, &error);
        }
        if (next != NULL) {
            json_decref(*merged);
            *merged = next;
            LL_APPEND(record->written, change);
        } else {
            end(record, change, code, &error);
        }
    }
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void write_waiting(struct record *record);

/* Those that were written wait again, before the others. */
static void try_again(struct record *record)
{
    LL_CONCAT(record->written, record->waiting);
    record->waiting = record->written;
    record->written = NULL;
}

/* The write has ended. */
static void conclude(struct record *record, int code, const struct baton_error *error)
{
    struct change *written;
    struct baton_error busy;

    record->is_writing = false;
    record->displays->counters.writes += code == BATON_OK;
    record->displays->counters.conflicts += code == BATON_ECONFLICT;
    if (code == BATON_ECONFLICT && ++record->tries < DISPLAY_TRIES_MAX) {
        try_again(record);
        if (record->displays->is_closed) {
            changes_cancel(record);
        }
        return;
    }
    if (code == BATON_ECONFLICT) {
        code = error_set(&busy, BATON_EBUSY,
                         "display \"%.64s\": others changed it at each of %d tries; ask again",
                         record->id, DISPLAY_TRIES_MAX);
        error = &busy;
    }
    record->tries = 0;
    written = record->written; /* callbacks may begin the next write */
    record->written = NULL;
    end_all(record, &written, code, error);
    if (code == BATON_ECANCELED) {
        changes_cancel(record);
    }
}

static void on_put(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    struct record *record = userdata;
    struct displays *displays = record->displays;
    (void)revision;

    record->busy++;
    conclude(record, code, error);
    write_waiting(record);
    record->busy--;
    record_settle(record);
    displays_release(displays); /* for the write */
}

static void write_merged(struct record *record, const json_t *merged, uint64_t revision)
{
    struct baton_error error = {0};
    char key[KEY_MAX];
    int code;

    (void)snprintf(key, sizeof(key), "data/%s", record->id);
    record->is_writing = true;
    displays_hold(record->displays);
    code = fleet_state_put_json(record->displays->config.state, key, merged, revision, on_put,
                                record, &error);
    if (code != BATON_OK) {
        conclude(record, code, &error);
        displays_release(record->displays); /* its caller holds it too */
    }
}

/* Until a write is under way, or nothing waits. If it is called from inside, by a callback, the
 * outer call goes on. */
static void write_waiting(struct record *record)
{
    if (record->is_merging) {
        return;
    }
    record->is_merging = true;
    record->busy++;
    while (!record->is_writing && record->waiting != NULL && !record->displays->is_closed) {
        uint64_t revision;
        const json_t *data = data_of(record, &revision);
        json_t *before = json_incref((json_t *)data);
        json_t *merged = json_incref(before);

        merge_waiting(record, &merged);
        if (merged != before && !json_equal(merged, before)) {
            write_merged(record, merged, revision);
        } else {
            end_all(record, &record->written, BATON_OK, &(struct baton_error){0});
        }
        json_decref(merged);
        json_decref(before);
    }
    record->busy--;
    record->is_merging = false;
}

int change_add(struct record *record, const struct change *change, struct baton_error *reterr)
{
    struct displays *displays = record->displays;
    struct change *added;

    if (displays->is_closed) {
        return error_set(reterr, BATON_ECANCELED, "display \"%.64s\": this process stops",
                         record->id);
    }
    if (record->change_count >= DISPLAY_WAITING_MAX) {
        return error_set(reterr, BATON_EBUSY,
                         "display \"%.64s\": %d changes wait already; ask again", record->id,
                         DISPLAY_WAITING_MAX);
    }
    added = malloc(sizeof(*added));
    if (added == NULL) {
        return error_set(reterr, BATON_ENOMEM, "display \"%.64s\": out of memory", record->id);
    }
    *added = *change;
    added->patch = json_incref(change->patch);
    displays->counters.changes++;
    record->change_count++;
    LL_APPEND(record->waiting, added);
    displays_hold(displays);
    write_waiting(record);
    record_settle(record);
    displays_release(displays);
    return BATON_OK;
}
