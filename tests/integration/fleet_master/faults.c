/* What fails, or comes late. */
#include "member/feed.h"
#include "member/store.h"
#include "yard_int.h"

#include <stdlib.h>
#include <string.h>

int yard_put_fails;
int yard_list_fails;
int yard_state_list_fails;
bool yard_puts_linger;
static const struct member *kept; /* NULL: nobody's writes of lists are kept */

/* ---- Writes that fail ------------------------------------------------------------------------ */

int __real_store_put(struct member *member, const char *key, const void *data, size_t bytes,
                     uint64_t revision, span lifetime, provider_put_cb done, void *userdata,
                     struct baton_error *reterr);
int __wrap_store_put(struct member *member, const char *key, const void *data, size_t bytes,
                     uint64_t revision, span lifetime, provider_put_cb done, void *userdata,
                     struct baton_error *reterr);

struct lingering {
    struct lingering *next;
    struct member *member;
    char *key;
    void *data; /* NULL: it deletes */
    size_t bytes;
    uint64_t revision;
    provider_put_cb done;
    void *userdata;
};

static struct lingering *lingering, **last_lingering = &lingering;

static void linger(const struct lingering *write)
{
    struct lingering *copy = malloc(sizeof(*copy));

    assert_non_null(copy);
    *copy = *write;
    copy->next = NULL;
    copy->key = strdup(write->key);
    copy->data = NULL;
    if (write->data) {
        copy->data = malloc(write->bytes + 1);
        assert_non_null(copy->data);
        memcpy(copy->data, write->data, write->bytes);
    }
    *last_lingering = copy;
    last_lingering = &copy->next;
}

void faults_end_lingering(void)
{
    struct lingering *write;

    while ((write = lingering)) {
        lingering = write->next;
        last_lingering = lingering ? last_lingering : &lingering;
        assert_int_equal(__real_store_put(write->member, write->key, write->data, write->bytes,
                                          write->revision, SPAN_NS(0), write->done, write->userdata,
                                          NULL),
                         BATON_OK);
        free(write->key);
        free(write->data);
        free(write);
    }
}

int __wrap_store_put(struct member *member, const char *key, const void *data, size_t bytes,
                     uint64_t revision, span lifetime, provider_put_cb done, void *userdata,
                     struct baton_error *reterr)
{
    if (yard_put_fails > 0) {
        yard_put_fails--;
        return error_set(reterr, BATON_EUNAVAILABLE, "no");
    }
    if (yard_puts_linger || (kept && member == kept && strstr(key, "/assigned/"))) {
        linger(&(struct lingering){.member = member,
                                   .key = (char *)key,
                                   .data = (void *)data,
                                   .bytes = bytes,
                                   .revision = revision,
                                   .done = done,
                                   .userdata = userdata});
        return BATON_OK;
    }
    return __real_store_put(member, key, data, bytes, revision, lifetime, done, userdata, reterr);
}

void yard_keep(int number)
{
    kept = number < 0 ? NULL : peers[number].member;
}

const char *yard_kept(void)
{
    return kept && lingering ? lingering->key : "";
}

int __real_store_list(struct member *member, const char *prefix, provider_values_cb done,
                      void *userdata, struct baton_error *reterr);
int __wrap_store_list(struct member *member, const char *prefix, provider_values_cb done,
                      void *userdata, struct baton_error *reterr);

int __wrap_store_list(struct member *member, const char *prefix, provider_values_cb done,
                      void *userdata, struct baton_error *reterr)
{
    if (yard_state_list_fails > 0) {
        yard_state_list_fails--;
        return error_set(reterr, BATON_EUNAVAILABLE, "no");
    }
    return __real_store_list(member, prefix, done, userdata, reterr);
}

/* ---- What a peer hears late ------------------------------------------------------------------ */

struct late_value {
    struct late_value *next;
    struct provider_value value; /* key and data are copies */
    size_t turn;                 /* not before */
};

/* Of a peer's state; before the state is opened, of nobody. */
static struct late_feed {
    struct feed *feed;
    feed_value_cb on_value;
    void *userdata;
    struct late_value *first, **last;
    size_t lag; /* in turns of the wake */
} late_feeds[PEERS];

static size_t turns;

int __real_feed_watch(struct feed **ret, struct member *member, const char *prefix,
                      feed_value_cb on_value, void *userdata, struct baton_error *reterr);
int __wrap_feed_watch(struct feed **ret, struct member *member, const char *prefix,
                      feed_value_cb on_value, void *userdata, struct baton_error *reterr);
void __real_feed_stop(struct feed *feed);
void __wrap_feed_stop(struct feed *feed);

static void late_value_free(struct late_value *late)
{
    free((void *)late->value.key);
    free((void *)late->value.data);
    free(late);
}

static void on_value(void *userdata, const struct provider_value *value)
{
    struct late_feed *feed = userdata;
    struct late_value *late;

    if (feed->lag == 0 && !feed->first) {
        feed->on_value(feed->userdata, value);
        return;
    }
    late = calloc(1, sizeof(*late));
    assert_non_null(late);
    late->value = *value;
    late->value.key = strdup(value->key);
    late->turn = turns + feed->lag;
    if (value->data) {
        late->value.data = memcpy(malloc(value->bytes + 1), value->data, value->bytes);
    }
    *feed->last = late;
    feed->last = &late->next;
}

static void deliver(struct late_feed *feed)
{
    struct late_value *late;

    while ((late = feed->first) && late->turn <= turns) {
        feed->first = late->next;
        feed->last = feed->first ? feed->last : &feed->first;
        feed->on_value(feed->userdata, &late->value);
        late_value_free(late);
    }
}

int __wrap_feed_watch(struct feed **ret, struct member *member, const char *prefix,
                      feed_value_cb real_on_value, void *userdata, struct baton_error *reterr)
{
    struct late_feed *feed = late_feeds;

    while (feed->on_value) {
        feed++;
        assert_true(feed < late_feeds + PEERS);
    }
    *feed = (struct late_feed){.on_value = real_on_value, .userdata = userdata};
    feed->last = &feed->first;
    int code = __real_feed_watch(&feed->feed, member, prefix, on_value, feed, reterr);
    *ret = feed->feed;
    return code;
}

void __wrap_feed_stop(struct feed *stopped)
{
    struct late_value *late;

    for (struct late_feed *feed = late_feeds; feed < late_feeds + PEERS; feed++) {
        while (stopped && feed->feed == stopped && (late = feed->first)) {
            feed->first = late->next;
            late_value_free(late);
        }
        if (stopped && feed->feed == stopped) {
            *feed = (struct late_feed){0};
        }
    }
    __real_feed_stop(stopped);
}

static struct late_feed *feed_of(const struct fleet_state *state)
{
    struct late_feed *feed = late_feeds;

    while (feed->userdata != state) {
        feed++;
        assert_true(feed < late_feeds + PEERS);
    }
    return feed;
}

void yard_lag(int number, size_t lag)
{
    struct late_feed *feed = feed_of(peers[number].state);

    feed->lag = lag;
    for (struct late_value *late = feed->first; late; late = late->next) {
        late->turn = late->turn < turns + lag ? late->turn : turns + lag;
    }
}

bool faults_is_any_late(void)
{
    for (struct late_feed *feed = late_feeds; feed < late_feeds + PEERS; feed++) {
        if (feed->first) {
            return true;
        }
    }
    return false;
}

/* ---- Lists of the processes that fail -------------------------------------------------------- */

static provider_members_cb real_done;

int __real_members_list(struct election *election, provider_members_cb done, void *userdata,
                        struct baton_error *reterr);
int __wrap_members_list(struct election *election, provider_members_cb done, void *userdata,
                        struct baton_error *reterr);

static void on_failing_list(void *userdata, int code, const struct baton_member *members,
                            size_t count)
{
    real_done(userdata, BATON_EUNAVAILABLE, NULL, 0);
}

/* By turns at once and later. */
int __wrap_members_list(struct election *election, provider_members_cb done, void *userdata,
                        struct baton_error *reterr)
{
    if (yard_list_fails > 0 && yard_list_fails-- % 2 == 0) {
        return error_set(reterr, BATON_EUNAVAILABLE, "no");
    }
    real_done = done;
    return __real_members_list(election, yard_list_fails > 0 ? on_failing_list : done, userdata,
                               reterr);
}

/* ---- All of them ----------------------------------------------------------------------------- */

void faults_turn(void)
{
    turns++;
    for (struct late_feed *feed = late_feeds; feed < late_feeds + PEERS; feed++) {
        deliver(feed);
    }
    if (!kept) {
        faults_end_lingering();
    }
}

void faults_reset(void)
{
    yard_put_fails = 0;
    yard_list_fails = 0;
    yard_state_list_fails = 0;
    yard_puts_linger = false;
    kept = NULL;
}
