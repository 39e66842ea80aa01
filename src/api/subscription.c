#include "api/subscription.h"

#include "api/perform.h"
#include "member/feed.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

struct baton_subscription {
    struct baton_subscription *next;
    struct baton *baton;
    struct feed *feed;
    baton_message_fn on_message; /* of a channel; else NULL */
    baton_change_fn on_change;   /* of keys; else NULL */
    void *userdata;
};

static void on_message(void *userdata, const char *channel, const void *data, size_t bytes)
{
    struct baton_subscription *subscription = userdata;

    subscription->on_message(subscription->baton, channel, data, bytes, subscription->userdata);
}

static void on_value(void *userdata, const struct provider_value *now)
{
    struct baton_subscription *subscription = userdata;
    struct baton_value value = {.key = (char *)now->key,
                                .data = (void *)now->data,
                                .bytes = now->bytes,
                                .revision = now->revision};

    subscription->on_change(subscription->baton, &value, subscription->userdata);
}

/* ---- On -------------------------------------------------------------------------------------- */

struct subscribe_call {
    struct call base;
    struct baton_subscription *subscription; /* the call's, while it is not in the list */
    const char *name;                        /* its caller waits without a limit */
};

static void drop_subscription(struct call *base)
{
    free(((struct subscribe_call *)base)->subscription);
}

static void forget(const struct baton_subscription *subscription)
{
    struct baton_subscription **at = &subscription->baton->subscriptions;

    while (*at != subscription) {
        at = &(*at)->next;
    }
    *at = subscription->next;
}

/* In the list first: the first values may come at once, and the function may unsubscribe then. */
static void run_on(struct call *base)
{
    struct subscribe_call *call = (struct subscribe_call *)base;
    struct baton_subscription *subscription = call->subscription;
    struct member *member = base->baton->member;
    struct baton_error error = {0};
    int code;

    subscription->next = base->baton->subscriptions;
    base->baton->subscriptions = subscription;
    call->subscription = NULL;
    code = subscription->on_change
               ? feed_watch(&subscription->feed, member, call->name, on_value, subscription, &error)
               : feed_subscribe(&subscription->feed, member, call->name, on_message, subscription,
                                &error);
    if (code != BATON_OK) {
        forget(subscription);
        free(subscription);
    }
    call_finish(base, code, &error);
}

static int put_on(struct baton_subscription **ret, const struct baton_subscription *like,
                  const char *name, struct baton_error *reterr)
{
    struct subscribe_call *call;
    int code = check_owner(like->baton, reterr);

    if (code != BATON_OK) {
        return code;
    }
    call = call_new(like->baton, sizeof(*call), run_on);
    if (call) {
        call->base.drop = drop_subscription;
        call->name = name;
        call->subscription = malloc(sizeof(*call->subscription));
    }
    if (!call || !call->subscription) {
        code = error_set(reterr, BATON_ENOMEM, "\"%.60s\": out of memory", name);
    } else {
        *call->subscription = *like;
        if (ret) {
            *ret = call->subscription; /* the first call may come before this function returns */
        }
        code = perform(&call->base, INT64_MAX, BATON_EDEADLK, reterr);
        if (ret && code != BATON_OK) {
            *ret = NULL;
        }
    }
    if (call) {
        call_unref(&call->base);
    }
    return code;
}

int baton_subscribe(struct baton_subscription **ret, struct baton *baton, const char *channel,
                    baton_message_fn fn, void *userdata, struct baton_error *reterr)
{
    const struct baton_subscription like = {.baton = baton, .on_message = fn, .userdata = userdata};

    return put_on(ret, &like, channel, reterr);
}

int baton_watch(struct baton_subscription **ret, struct baton *baton, const char *prefix,
                baton_change_fn fn, void *userdata, struct baton_error *reterr)
{
    const struct baton_subscription like = {.baton = baton, .on_change = fn, .userdata = userdata};

    return put_on(ret, &like, prefix, reterr);
}

/* ---- Off ------------------------------------------------------------------------------------- */

static void run_off(struct call *base)
{
    struct subscribe_call *call = (struct subscribe_call *)base;

    forget(call->subscription);
    feed_stop(call->subscription->feed);
    call_finish(base, BATON_OK, NULL); /* frees it with the last reference */
}

void baton_unsubscribe(struct baton_subscription *subscription)
{
    struct subscribe_call *call;

    if (!subscription || check_owner(subscription->baton, NULL) != BATON_OK) {
        return;
    }
    while (!(call = call_new(subscription->baton, sizeof(*call), run_off))) {
        (void)sched_yield();
    }
    call->subscription = subscription;
    if (perform(&call->base, INT64_MAX, BATON_OK, NULL) == BATON_OK) {
        call->base.drop = drop_subscription;
    } /* else it was stopped: nothing calls it, and baton_close() frees it */
    call_unref(&call->base);
}

void subscriptions_free(struct baton *baton)
{
    while (baton->subscriptions) {
        struct baton_subscription *subscription = baton->subscriptions;
        baton->subscriptions = subscription->next;
        feed_stop(subscription->feed);
        free(subscription);
    }
}
