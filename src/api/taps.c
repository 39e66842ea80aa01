/* Functions that hear of a channel or of keys, on the loop's thread. */
#include "api/internal.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

struct tap {
    struct tap *next;
    struct baton *baton;
    char *name; /* of a channel, or the prefix of keys */
    bool is_watch;
    baton_message_fn on_message;
    baton_change_fn on_change;
    void *userdata;
};

static void tap_free(struct tap *tap)
{
    if (tap) {
        free(tap->name);
        free(tap);
    }
}

void taps_free(struct baton *baton)
{
    while (baton->taps) {
        struct tap *tap = baton->taps;
        baton->taps = tap->next;
        tap_free(tap);
    }
}

static struct tap **find(struct baton *baton, const struct tap *like)
{
    struct tap **at = &baton->taps;

    while (*at && !((*at)->is_watch == like->is_watch && (*at)->on_message == like->on_message &&
                    (*at)->on_change == like->on_change && (*at)->userdata == like->userdata &&
                    strcmp((*at)->name, like->name) == 0)) {
        at = &(*at)->next;
    }
    return at;
}

static void on_message(void *userdata, const char *channel, const void *data, size_t bytes)
{
    struct tap *tap = userdata;

    tap->on_message(tap->baton, channel, data, bytes, tap->userdata);
}

/* The tap may go from inside its own function: then the rest is not told. */
static void on_change(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct baton *baton = ((struct tap *)userdata)->baton;

    for (size_t i = 0; code == BATON_OK && i < count; i++) {
        struct tap *tap = baton->taps;
        while (tap && tap != userdata) {
            tap = tap->next;
        }
        if (tap) {
            struct baton_value value = {.key = (char *)values[i].key,
                                        .data = (void *)values[i].data,
                                        .bytes = values[i].bytes,
                                        .revision = values[i].revision};
            tap->on_change(baton, &value, tap->userdata);
        }
    }
}

/* ---- On -------------------------------------------------------------------------------------- */

struct tap_call {
    struct call base;
    struct tap *tap;
};

static int turn_on(struct tap *tap, struct baton_error *reterr)
{
    struct provider *provider = tap->baton->provider;
    int code;

    if (*find(tap->baton, tap)) {
        return error_set(reterr, BATON_EEXIST, "\"%.60s\": this function hears of it already",
                         tap->name);
    }
    tap->next = tap->baton->taps;
    tap->baton->taps = tap; /* before: what is there may be told at once */
    code = tap->is_watch ? provider->ops->watch(provider, tap->name, on_change, tap, reterr)
                         : provider->ops->subscribe(provider, tap->name, on_message, tap, reterr);
    if (code != BATON_OK) {
        *find(tap->baton, tap) = tap->next;
    }
    return code;
}

/* The tap is the call's until it is turned on; then it is in the baton's list. */
static void run_on(struct call *base)
{
    struct tap_call *call = (struct tap_call *)base;
    struct baton_error error = {0};
    int code = turn_on(call->tap, &error);

    if (code == BATON_OK) {
        call->tap = NULL;
    }
    call_finish(base, code, &error);
}

static void drop_tap(struct call *base)
{
    tap_free(((struct tap_call *)base)->tap);
}

static struct tap *tap_copy(const struct tap *like, struct baton *baton)
{
    struct tap *tap = malloc(sizeof(*tap));

    if (tap) {
        *tap = *like;
        tap->baton = baton;
        tap->name = strdup(like->name);
        if (!tap->name) {
            free(tap);
            tap = NULL;
        }
    }
    return tap;
}

static int put_on(struct baton *baton, const struct tap *like, unsigned feature, const char *what,
                  struct baton_error *reterr)
{
    struct tap_call *call;
    int code = check_owner(baton, reterr);

    if (code == BATON_OK) {
        code = check_feature(baton, feature, what, reterr);
    }
    if (code != BATON_OK) {
        return code;
    }
    call = call_new(baton, sizeof(*call), run_on);
    if (call) {
        call->base.drop = drop_tap;
        call->tap = tap_copy(like, baton);
    }
    if (!call || !call->tap) {
        code = error_set(reterr, BATON_ENOMEM, "\"%.60s\": out of memory", like->name);
    } else {
        code = call_perform(&call->base, INT64_MAX, BATON_EBUSY, reterr);
    }
    if (call) {
        call_unref(&call->base);
    }
    return code;
}

int baton_subscribe(struct baton *baton, const char *channel, baton_message_fn fn, void *userdata,
                    struct baton_error *reterr)
{
    struct tap like = {.name = (char *)channel, .on_message = fn, .userdata = userdata};

    return put_on(baton, &like, PROVIDER_CHANNELS, "channels", reterr);
}

int baton_watch(struct baton *baton, const char *prefix, baton_change_fn fn, void *userdata,
                struct baton_error *reterr)
{
    struct tap like = {
        .name = (char *)prefix, .is_watch = true, .on_change = fn, .userdata = userdata};

    return put_on(baton, &like, PROVIDER_STATE, "state", reterr);
}

/* ---- Off ------------------------------------------------------------------------------------- */

struct untap_call {
    struct call base;
    const struct tap *like; /* its caller waits without a limit */
};

static void run_off(struct call *base)
{
    struct baton *baton = base->baton;
    struct tap **at = find(baton, ((struct untap_call *)base)->like);
    struct tap *tap = *at;

    if (tap) {
        struct provider *provider = baton->provider;
        *at = tap->next;
        if (tap->is_watch) {
            provider->ops->unwatch(provider, tap->name, tap);
        } else {
            provider->ops->unsubscribe(provider, tap->name, tap);
        }
        tap_free(tap);
    }
    call_finish(base, BATON_OK, NULL);
}

static void take_off(struct baton *baton, const struct tap *like)
{
    struct untap_call *call;

    if (check_owner(baton, NULL) != BATON_OK) {
        return;
    }
    while (!(call = call_new(baton, sizeof(*call), run_off))) {
        (void)sched_yield();
    }
    call->like = like;
    (void)call_perform(&call->base, INT64_MAX, BATON_OK, NULL); /* stopped: nothing calls it */
    call_unref(&call->base);
}

void baton_unsubscribe(struct baton *baton, const char *channel, baton_message_fn fn,
                       void *userdata)
{
    struct tap like = {.name = (char *)channel, .on_message = fn, .userdata = userdata};

    take_off(baton, &like);
}

void baton_unwatch(struct baton *baton, const char *prefix, baton_change_fn fn, void *userdata)
{
    struct tap like = {
        .name = (char *)prefix, .is_watch = true, .on_change = fn, .userdata = userdata};

    take_off(baton, &like);
}
