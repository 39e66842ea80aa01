/* The states of a hand-over, and the order of its events. The provider is memory:, both members run
 * on one loop, and the test runs the loop. */
#include "cmocka_all.h"
#include "lib/patience.h"
#include "member/feed.h"
#include "member/handover.h"
#include "member/handover_int.h"
#include "member/join.h"
#include "member/members.h"
#include "member/state.h"
#include "member/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct seen {
    char course[64]; /* 'A' acquired, 'D' drain, 'L' lost, 'E' error, 'S' stopped, 'r' the reply */
    size_t count;
    int code; /* of the reply; 1: none yet */
};

struct part {
    struct member *member;
    struct election *election;
    struct observer observer;
    struct seen seen;
    bool holds;   /* while it hears of BATON_EVENT_DRAIN */
    bool resigns; /* while it hears of BATON_EVENT_ACQUIRED */
    bool leaves;  /* while it hears of BATON_EVENT_LOST */
    struct departure departure;
    bool is_closed; /* or left */
};

static uv_loop_t loop;
static struct part a, b;

/* ---- The fixture ----------------------------------------------------------------------------- */

static void note(struct seen *seen, char what)
{
    assert_true(seen->count + 1 < sizeof(seen->course));
    seen->course[seen->count++] = what;
}

static void on_reply(void *userdata, int code, const struct baton_error *error)
{
    struct seen *seen = userdata;

    seen->code = code;
    note(seen, 'r');
}

static int begin(struct part *part, enum handover_kind kind, const char *to, int64_t ms,
                 bool is_forced)
{
    const struct handover_request request = {.kind = kind,
                                             .to = to,
                                             .deadline = instant_add(clock_now(), SPAN_MS(ms)),
                                             .is_forced = is_forced,
                                             .done = on_reply,
                                             .userdata = &part->seen};
    return handover_begin(part->election, &request, NULL);
}

static void on_event(struct observer *observer, const struct baton_event *event)
{
    static const struct {
        enum baton_event_type type;
        char letter;
    } letters[] = {{BATON_EVENT_ACQUIRED, 'A'},
                   {BATON_EVENT_DRAIN, 'D'},
                   {BATON_EVENT_LOST, 'L'},
                   {BATON_EVENT_ERROR, 'E'},
                   {BATON_EVENT_STOPPED, 'S'}};
    struct part *part = OBSERVER_OF(struct part, observer);

    for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++) {
        if (letters[i].type == event->type) {
            note(&part->seen, letters[i].letter);
        }
    }
    if (event->type == BATON_EVENT_DRAIN && part->holds) {
        handover_hold(part->election);
    }
    if (event->type == BATON_EVENT_ACQUIRED && part->resigns) {
        part->resigns = false;
        assert_int_equal(begin(part, HANDOVER_RESIGN, NULL, 60000, false), BATON_OK);
    }
    if (event->type == BATON_EVENT_LOST && part->leaves) {
        election_leave(part->election, &part->departure);
    }
}

static void on_end(void *userdata)
{
    ((struct part *)userdata)->is_closed = true;
}

static void on_left(struct departure *departure)
{
    assert_ptr_equal(departure, &a.departure);
    a.is_closed = true;
}

static void enter(struct part *part, const char *node)
{
    const struct provider_config config = {.loop = &loop, .url = "memory:unit", .node = node};
    struct baton_error error = {0};

    if (member_open(&part->member, &config, &error) != 0) {
        fail_msg("%s", error.message);
    }
    part->seen.code = 1;
    part->observer.on_event = on_event;
    part->election = calloc(1, election_bytes("e"));
    assert_int_equal(election_init(part->election, "e", NULL), 0);
    election_observe(part->election, &part->observer);
    assert_int_equal(election_join(part->election, part->member, false, NULL, NULL), 0);
}

/* Runs the loop until it holds. */
#define UNTIL(holds)                                                                               \
    do {                                                                                           \
        instant limit_ = instant_add(clock_now(), SPAN_S(PATIENCE_S));                             \
        while (!(holds)) {                                                                         \
            assert_true(instant_before(clock_now(), limit_));                                      \
            (void)uv_run(&loop, UV_RUN_NOWAIT);                                                    \
        }                                                                                          \
    } while (0)

static int open_two(void **state)
{
    a = b = (struct part){.member = NULL};
    assert_int_equal(uv_loop_init(&loop), 0);
    enter(&a, "a");
    UNTIL(strchr(a.seen.course, 'A'));
    enter(&b, "b");
    a.seen = (struct seen){.code = 1};
    return 0;
}

static void leave(struct part *part)
{
    part->is_closed = false;
    member_close(part->member, on_end, part);
    UNTIL(part->is_closed);
}

static int close_two(void **state)
{
    leave(&a);
    leave(&b);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    election_fini(a.election);
    election_fini(b.election);
    free(a.election);
    free(b.election);
    member_free(a.member);
    member_free(b.member);
    assert_int_equal(uv_loop_close(&loop), 0);
    return 0;
}

static bool leads(const struct part *part)
{
    return election_is_leader(part->election, NULL);
}

/* ---- The hand-over --------------------------------------------------------------------------- */

static void all_hear_of_the_loss_before_the_reply_comes(void **state)
{
    assert_int_equal(begin(&a, HANDOVER_RESIGN, NULL, 60000, false), BATON_OK);
    UNTIL(a.seen.code != 1);
    assert_int_equal(a.seen.code, BATON_OK);
    assert_string_equal(a.seen.course, "DLr");
    UNTIL(leads(&b));
}

static void a_leader_keeps_its_lease_while_an_observer_holds(void **state)
{
    a.holds = true;
    assert_int_equal(begin(&a, HANDOVER_RESIGN, "b", 60000, false), BATON_OK);
    for (int i = 0; i < 100; i++) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    }
    assert_string_equal(a.seen.course, "D");
    assert_true(leads(&a));
    assert_false(handover_is_going(a.election));
    handover_release(a.election);
    assert_true(!leads(&a) || handover_is_going(a.election)); /* nothing is to begin again */
    UNTIL(a.seen.code == BATON_OK);
    assert_true(leads(&b));
}

static void what_holds_too_long_keeps_leadership_unless_it_is_forced(void **state)
{
    a.holds = true;
    assert_int_equal(begin(&a, HANDOVER_RESIGN, NULL, 20, false), BATON_OK);
    UNTIL(a.seen.code != 1);
    assert_int_equal(a.seen.code, BATON_ETIMEDOUT);
    assert_string_equal(a.seen.course, "DEr");
    assert_true(leads(&a));
    handover_release(a.election); /* too late, and nothing */
    assert_int_equal(begin(&a, HANDOVER_RESIGN, NULL, 20, true), BATON_OK);
    UNTIL(a.seen.code == BATON_OK);
    assert_string_equal(a.seen.course, "DErDLr");
}

static void there_is_one_hand_over_at_a_time(void **state)
{
    a.holds = true;
    assert_int_equal(begin(&a, HANDOVER_RESIGN, NULL, 60000, false), BATON_OK);
    assert_int_equal(begin(&a, HANDOVER_RESIGN, NULL, 60000, false), BATON_EBUSY);
    assert_int_equal(begin(&a, HANDOVER_CORDON, NULL, 60000, false), BATON_EBUSY);
    handover_release(a.election);
    UNTIL(a.seen.code == BATON_OK);
}

/* Of a memory: provider the group wants nothing: the event is made up. */
static void a_request_joins_the_draining_that_the_group_wants(void **state)
{
    const struct baton_event wish = {.type = BATON_EVENT_DRAIN, .lease_left_ns = 60000000000};
    a.holds = true;
    handover_want(a.election, &wish);
    UNTIL(strcmp(a.seen.course, "D") == 0);
    assert_int_equal(begin(&a, HANDOVER_CORDON, NULL, 60000, false), BATON_OK);
    assert_int_equal(begin(&a, HANDOVER_CORDON, NULL, 60000, false), BATON_EBUSY);
    assert_true(leads(&a));
    handover_release(a.election);
    UNTIL(a.seen.code == BATON_OK);
    assert_string_equal(a.seen.course, "DLr");
    assert_true(election_is_cordoned(a.election));
}

static void nothing_stops_for_a_member_that_cannot_lead(void **state)
{
    char longer[BATON_NAME_MAX + 1];

    memset(longer, 'x', sizeof(longer));
    longer[BATON_NAME_MAX] = '\0';
    assert_int_equal(begin(&a, HANDOVER_RESIGN, "c", 60000, false), BATON_EINVAL);
    assert_int_equal(begin(&a, HANDOVER_RESIGN, longer, 60000, false), BATON_EINVAL);
    assert_int_equal(begin(&b, HANDOVER_RESIGN, NULL, 60000, false), BATON_ENOTLEADER);
    assert_string_equal(a.seen.course, "");
    assert_true(leads(&a));
}

static void a_leadership_may_be_given_away_while_it_is_announced(void **state)
{
    b.resigns = true;
    b.seen = (struct seen){.code = 1};
    assert_int_equal(begin(&a, HANDOVER_CORDON, NULL, 60000, false), BATON_OK);
    UNTIL(b.seen.code != 1);
    assert_memory_equal(b.seen.course, "ADLr", 4);
}

static void a_cordoned_member_leads_no_more_until_it_is_uncordoned(void **state)
{
    assert_int_equal(begin(&b, HANDOVER_CORDON, NULL, 60000, false), BATON_OK);
    assert_int_equal(b.seen.code, BATON_OK); /* a follower: at once */
    assert_true(election_is_cordoned(b.election));
    assert_int_equal(begin(&a, HANDOVER_CORDON, NULL, 60000, false), BATON_OK);
    UNTIL(a.seen.code == BATON_OK);
    assert_false(leads(&a) || leads(&b));
    assert_int_equal(handover_uncordon(b.election, NULL), BATON_OK);
    assert_false(election_is_cordoned(b.election));
    UNTIL(leads(&b));
}

static struct provider_ops failing;
static const struct provider_ops *working;

static int has_no_memory(struct provider_election *election, bool eligible,
                         struct baton_error *reterr)
{
    election->ops = working; /* the next time it has */
    return error_set(reterr, BATON_ENOMEM, "out of memory");
}

static void what_could_not_make_a_member_able_may_be_tried_again(void **state)
{
    assert_int_equal(handover_set_able(b.election, false, NULL), BATON_OK);
    assert_true(election_is_cordoned(b.election));
    working = b.election->provider->ops;
    failing = *working;
    failing.set_eligible = has_no_memory;
    b.election->provider->ops = &failing;
    assert_int_equal(handover_set_able(b.election, true, NULL), BATON_ENOMEM);
    assert_true(election_is_cordoned(b.election));
    assert_int_equal(handover_set_able(b.election, true, NULL), BATON_OK);
    assert_false(election_is_cordoned(b.election));
    assert_int_equal(begin(&a, HANDOVER_CORDON, NULL, 60000, false), BATON_OK);
    UNTIL(leads(&b));
}

static void the_end_of_an_election_ends_its_hand_over(void **state)
{
    a.holds = true;
    assert_int_equal(begin(&a, HANDOVER_RESIGN, NULL, 60000, false), BATON_OK);
    a.departure.left = on_left;
    election_leave(a.election, &a.departure);
    UNTIL(a.is_closed);
    assert_int_not_equal(a.seen.code, 1);
    assert_non_null(strchr(a.seen.course, 'S'));
    assert_int_equal(begin(&a, HANDOVER_RESIGN, NULL, 1, false), BATON_ECLOSED);
    assert_int_equal(members_set_metadata(a.election, NULL, NULL), BATON_ECLOSED);
}

/* ---- Feeds ----------------------------------------------------------------------------------- */

static void a_member_that_is_closed_refuses_requests(void **state)
{
    struct provider_config config = {.loop = &loop, .url = "memory:unit", .node = "c"};
    struct part c = {.member = NULL};

    assert_int_equal(member_open(&c.member, &config, NULL), BATON_OK);
    leave(&c);
    assert_int_equal(store_get(c.member, "k", NULL, NULL, NULL), BATON_ECLOSED);
    assert_int_equal(store_get_each(c.member, NULL, 0, NULL, NULL, NULL), BATON_ECLOSED);
    assert_int_equal(store_list(c.member, "k", NULL, NULL, NULL), BATON_ECLOSED);
    assert_int_equal(store_put(c.member, "k", "", 0, 0, SPAN_NS(0), NULL, NULL, NULL),
                     BATON_ECLOSED);
    assert_int_equal(store_publish(c.member, "k", "", 0, NULL, NULL, NULL), BATON_ECLOSED);
    member_free(c.member);
}

struct reader {
    struct feed *feed;
    int calls;
};

static void read_one(void *userdata, const struct provider_value *value)
{
    struct reader *reader = userdata;

    reader->calls++;
    feed_stop(reader->feed);
}

static void on_put(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    on_reply(userdata, code, error);
}

static void a_feed_may_stop_itself_at_the_first_of_many_values(void **state)
{
    struct reader reader = {.calls = 0};

    for (int i = 0; i < 3; i++) {
        char key[8];
        (void)snprintf(key, sizeof(key), "k%d", i);
        a.seen.code = 1;
        assert_int_equal(store_put(a.member, key, "v", 1, 0, SPAN_NS(0), on_put, &a.seen, NULL),
                         BATON_OK);
        UNTIL(a.seen.code == BATON_OK);
    }
    assert_int_equal(feed_watch(&reader.feed, b.member, "k", read_one, &reader, NULL), BATON_OK);
    UNTIL(reader.calls > 0);
    for (int i = 0; i < 100; i++) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(reader.calls, 1);
}

/* ---- Several observers ----------------------------------------------------------------------- */

static void all_observers_hear_in_one_order_when_one_of_them_leaves(void **state)
{
    struct part behind = {.observer.on_event = on_event};

    election_observe(a.election, &behind.observer);
    a.leaves = true;
    a.departure.left = on_left;
    assert_int_equal(begin(&a, HANDOVER_RESIGN, NULL, 60000, false), BATON_OK);
    UNTIL(a.is_closed);
    assert_string_equal(behind.seen.course, "DLS");
    assert_string_equal(a.seen.course, "DLrS");
    assert_int_equal(members_check_change(a.election, NULL), BATON_ECLOSED);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_two, close_two)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(all_hear_of_the_loss_before_the_reply_comes),
        CASE(a_leader_keeps_its_lease_while_an_observer_holds),
        CASE(what_holds_too_long_keeps_leadership_unless_it_is_forced),
        CASE(there_is_one_hand_over_at_a_time),
        CASE(a_request_joins_the_draining_that_the_group_wants),
        CASE(nothing_stops_for_a_member_that_cannot_lead),
        CASE(a_leadership_may_be_given_away_while_it_is_announced),
        CASE(a_cordoned_member_leads_no_more_until_it_is_uncordoned),
        CASE(what_could_not_make_a_member_able_may_be_tried_again),
        CASE(the_end_of_an_election_ends_its_hand_over),
        CASE(a_member_that_is_closed_refuses_requests),
        CASE(all_observers_hear_in_one_order_when_one_of_them_leaves),
        CASE(a_feed_may_stop_itself_at_the_first_of_many_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
