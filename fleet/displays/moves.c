/* A session moves: the displays that have it give it up, one after the other, then another gets it.
 *
 * In this order nobody sees the session at two displays. If the process dies in between it is at
 * none, and whoever asked for the move got no answer and asks again.
 */
#include "fleet/displays/displays_int.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* More displays than one have a session only after a race. */
enum { HOLDERS_MAX = 16 };

struct move {
    struct displays *displays;
    struct change change; /* owns its patch */
    int64_t session;
    unsigned left; /* displays that may still be asked */
    char display[];
};

/* The first display other than `display` that has the session. */
static struct record *next_holder(const struct move *move)
{
    struct holding *holding;
    struct record *record;

    HASH_FIND(hh, move->displays->holdings, &move->session, sizeof(move->session), holding);
    record = holding != NULL ? holding->records : NULL;
    while (record != NULL && strcmp(record->id, move->display) == 0) {
        record = record->next;
    }
    return record;
}

static void finish(struct move *move, int code, const struct baton_error *error)
{
    if (code != BATON_OK && move->change.done != NULL) {
        move->change.done(move->change.userdata, code, error);
    }
    json_decref(move->change.patch);
    free(move);
}

static void begin_change(struct move *move)
{
    struct record *record = record_need(move->displays, move->display);
    struct baton_error error = {0};
    int code = record != NULL ? change_add(record, &move->change, &error)
                              : error_set(&error, BATON_ENOMEM, "display \"%.64s\": out of memory",
                                          move->display);

    finish(move, code, &error);
}

static void on_left(void *userdata, int code, const struct baton_error *error);

static void go_on(struct move *move)
{
    struct record *record = move->left > 0 ? next_holder(move) : NULL;
    struct change leave = {.only_in = {.is_set = true, .id = move->session},
                           .otherwise = BATON_OK,
                           .done = on_left,
                           .userdata = move};
    struct baton_error error = {0};
    int code;

    if (record == NULL) {
        begin_change(move);
        return;
    }
    move->left--;
    leave.patch = json_pack("{s:n}", "sessionId");
    code = leave.patch != NULL
               ? change_add(record, &leave, &error)
               : error_set(&error, BATON_ENOMEM, "display \"%.64s\": out of memory", record->id);
    json_decref(leave.patch);
    if (code != BATON_OK) {
        finish(move, code, &error);
    }
}

static void on_left(void *userdata, int code, const struct baton_error *error)
{
    struct move *move = userdata;

    if (code != BATON_OK) {
        finish(move, code, error);
    } else {
        go_on(move);
    }
}

int move_begin(struct displays *displays, const char *display, int64_t session,
               const struct change *change, struct baton_error *reterr)
{
    size_t bytes = strlen(display) + 1;
    struct move *move = calloc(1, sizeof(*move) + bytes);

    if (move == NULL) {
        return error_set(reterr, BATON_ENOMEM, "display \"%.64s\": out of memory", display);
    }
    *move = (struct move){
        .displays = displays, .change = *change, .session = session, .left = HOLDERS_MAX};
    memcpy(move->display, display, bytes);
    (void)json_incref(move->change.patch);
    displays_hold(displays);
    go_on(move);
    displays_release(displays); /* NOLINT(clang-analyzer-unix.Malloc): finish() frees the move */
    return BATON_OK;
}
