/* A fleet's master on a provider: what it writes, and in which order, whoever dies. */
#include "member/handover.h"
#include "yard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One process, two workers that were heard of. */
static void open_yard(void)
{
    yard_open(0, NULL);
    yard_worker("w1", "");
    yard_worker("w2", "");
    AWAIT(yard_owner("w2", 0)[0]);
    yard_hear("w1", true);
    yard_hear("w2", true);
}

static bool is_at(const char *subscription, const char *worker)
{
    return strcmp(yard_worker_of(subscription), worker) == 0;
}

/* Each has a worker, and no worker has one that is gone. */
static bool has_every_one(void)
{
    if (fleet_state_count(yard_state(), FLEET_SUBSCRIPTION) !=
        yard_assigned("w1") + yard_assigned("w2") + yard_assigned("w3")) {
        return false;
    }
    for (const struct fleet_object *object = NULL;
         (object = fleet_state_next(yard_state(), FLEET_SUBSCRIPTION, object));) {
        if (!yard_worker_of(object->id)[0]) {
            return false;
        }
    }
    return true;
}

static void a_subscription_gets_a_worker_and_the_worker_an_owner(void **state)
{
    open_yard();
    yard_subscribe("d1", "c1");
    AWAIT(yard_worker_of("d1;c1")[0]);
    assert_string_equal(yard_owner("w1", 0), "p0");
    assert_string_equal(yard_owner("w1", 1), "");
    assert_string_equal(yard_reason("d1;c1"), "");
}

/* The first list must be stored before the second is written: the yard watches that. */
static void what_a_dead_worker_had_goes_to_another_one(void **state)
{
    open_yard();
    yard_subscribe("d1", "c1");
    yard_subscribe("d2", "c1");
    AWAIT(yard_worker_of("d2;c1")[0]);
    bool at_first = is_at("d1;c1", "w1");
    yard_hear(at_first ? "w1" : "w2", false);
    AWAIT(is_at("d1;c1", at_first ? "w2" : "w1") && is_at("d2;c1", at_first ? "w2" : "w1"));
    assert_int_equal(yard_assigned(at_first ? "w1" : "w2"), 0);
    yard_hear(at_first ? "w1" : "w2", true); /* gets nothing back */
    yard_settle();
    assert_int_equal(yard_assigned(at_first ? "w1" : "w2"), 0);
}

/* Its owner has not heard yet that another one got what it had. */
static void a_worker_that_comes_back_at_a_late_owner_does_not_get_its_old_list(void **state)
{
    enum { LONG = 1000000 };
    yard_open(0, NULL);
    yard_open(1, NULL);
    yard_worker("w1", "");
    yard_worker("w2", "");
    AWAIT(strcmp(yard_owner("w1", 0), yard_owner("w2", 0)) != 0 && yard_owner("w2", 0)[0]);
    yard_hear("w1", true);
    yard_hear("w2", true);
    const char *id = strcmp(yard_owner("w1", 0), "p1") == 0 ? "w1" : "w2";
    const char *other = strcmp(id, "w1") == 0 ? "w2" : "w1";
    yard_subscribe("d1", "c1");
    yard_subscribe("d2", "c2");
    AWAIT(yard_assigned(id) == 1 && yard_assigned(other) == 1);
    yard_settle();
    yard_lag(1, LONG);
    yard_hear(id, false);
    AWAIT(yard_assigned(other) == 2);
    assert_int_equal(fleet_state_assigned(peers[1].state, id)->count, 1);
    yard_hear(id, true);
    AWAIT(fleet_state_assigned(peers[1].state, id)->count == 0);
    yard_lag(1, 0);
    yard_settle();
    assert_int_equal(yard_assigned(id), 0);
}

/* It leads before its feed has brought the last list of the one before. The worker's owner is a
 * third process: an own mark would have read the list. */
static void a_new_master_that_hears_late_does_not_give_what_was_given(void **state)
{
    enum { LONG = 1000000 };
    static const char *const workers[] = {"w1", "w2", "w3"};
    const char *has = NULL;
    for (int i = 0; i < 3; i++) {
        yard_open(i, NULL);
        yard_worker(workers[i], "");
    }
    AWAIT(yard_owner("w1", 0)[0] && yard_owner("w2", 0)[0] && yard_owner("w3", 0)[0]);
    for (int i = 0; i < 3; i++) {
        has = strcmp(yard_owner(workers[i], 0), "p2") == 0 ? workers[i] : has;
    }
    assert_non_null(has);
    yard_hear(has, true);
    yard_subscribe("d2", "c2"); /* so a plan would choose another one for the next */
    AWAIT(is_at("d2;c2", has));
    yard_hear(has, false);
    yard_subscribe("d1", "c1");
    yard_settle();
    yard_lag(1, LONG);
    yard_hear(has, true);
    AWAIT(is_at("d1;c1", has));
    for (int i = 0; i < 3; i++) {
        if (workers[i] != has) {
            yard_hear(workers[i], true);
        }
    }
    yard_state_list_fails = 1;
    yard_close(0);
    AWAIT(yard_leader() == 1 && master_counters(peers[1].master)->plans > 0 &&
          fleet_state_counters(peers[1].state)->loads == 3);
    yard_lag(1, 0);
    yard_settle();
    assert_true(is_at("d1;c1", has));
}

/* Nor has the feed brought the worker that was given something. */
static void a_new_master_that_hears_late_leaves_a_new_worker_its_list(void **state)
{
    enum { LONG = 1000000 };
    for (int i = 0; i < 3; i++) {
        yard_open(i, NULL);
    }
    yard_worker("w1", "");
    yard_worker("w2", "");
    AWAIT(yard_owner("w1", 0)[0] && yard_owner("w2", 0)[0]);
    yard_hear("w1", false);
    yard_hear("w2", false);
    yard_settle();
    yard_lag(1, LONG);
    yard_worker("w3", "");
    AWAIT(yard_owner("w3", 0)[0]);
    assert_string_equal(yard_owner("w3", 0), "p2"); /* whose cache is not late */
    yard_hear("w3", true);
    yard_subscribe("d1", "c1");
    AWAIT(is_at("d1;c1", "w3"));
    uint64_t revision = fleet_state_assigned(yard_state(), "w3")->revision;
    yard_hear("w1", true);
    yard_close(0);
    AWAIT(yard_leader() == 1 && master_counters(peers[1].master)->plans > 0);
    yard_lag(1, 0);
    yard_settle();
    assert_true(is_at("d1;c1", "w3"));
    assert_int_equal(fleet_state_assigned(yard_state(), "w3")->revision, revision);
}

static void the_only_worker_keeps_its_list_while_it_is_away(void **state)
{
    yard_open(0, NULL);
    yard_worker("w1", "");
    yard_hear("w1", true);
    yard_subscribe("d1", "c1");
    AWAIT(is_at("d1;c1", "w1"));
    yard_hear("w1", false);
    AWAIT(yard_reason("d1;c1")[0]);
    assert_true(is_at("d1;c1", "w1"));
    assert_true(yard_has_event("not-placed"));
    yard_hear("w1", true);
    AWAIT(!yard_reason("d1;c1")[0]);
    assert_true(is_at("d1;c1", "w1"));
}

static void a_worker_that_drains_lets_go_before_another_one_gets_it(void **state)
{
    open_yard();
    yard_subscribe("d1", "c1");
    AWAIT(yard_worker_of("d1;c1")[0]);
    bool at_first = is_at("d1;c1", "w1");
    yard_settle();
    yard_confirm_always(false);
    yard_worker(at_first ? "w1" : "w2", ",\"draining\":true");
    AWAIT(yard_is_leaving(at_first ? "w1" : "w2", "d1;c1"));
    yard_settle();
    assert_string_equal(yard_worker_of("d1;c1"), "");
    assert_non_null(strstr(yard_reason("d1;c1"), "leaves worker w"));
    yard_confirm(at_first ? "w1" : "w2");
    AWAIT(is_at("d1;c1", at_first ? "w2" : "w1"));
    AWAIT(!yard_reason("d1;c1")[0]);
    assert_false(yard_is_leaving(at_first ? "w1" : "w2", "d1;c1"));
}

static void a_worker_that_never_lets_go_is_passed_over_with_an_alarm(void **state)
{
    open_yard();
    yard_subscribe("d1", "c1");
    AWAIT(yard_worker_of("d1;c1")[0]);
    bool at_first = is_at("d1;c1", "w1");
    yard_settle();
    yard_confirm_always(false);
    yard_worker(at_first ? "w1" : "w2", ",\"draining\":true");
    AWAIT(yard_is_leaving(at_first ? "w1" : "w2", "d1;c1"));
    yard_pass(SPAN_S(9));
    yard_settle();
    assert_string_equal(yard_worker_of("d1;c1"), "");
    yard_hear(at_first ? "w1" : "w2", true); /* the yard: it runs nothing of that any more */
    yard_pass(SPAN_S(2));
    AWAIT(is_at("d1;c1", at_first ? "w2" : "w1"));
    assert_true(yard_has_event("worker-not-in-sync"));
    assert_int_equal(master_counters(peers[0].master)->overdue, 1);
}

/* It may be sent the list still, for all that the master knows. */
static void what_an_offline_worker_had_stays_while_it_is_marked_but_not_for_ever(void **state)
{
    open_yard();
    yard_subscribe("d1", "c1");
    AWAIT(yard_worker_of("d1;c1")[0]);
    yard_settle();
    bool at_first = is_at("d1;c1", "w1");
    const char *id = at_first ? "w1" : "w2";
    assert_true(fleet_state_assigned(yard_state(), id)->is_online);
    yard_marks_fail = true;
    yard_hear(id, false);
    yard_pass(SPAN_S(14));
    yard_settle();
    assert_true(is_at("d1;c1", id));
    yard_pass(SPAN_S(2));
    AWAIT(is_at("d1;c1", at_first ? "w2" : "w1"));
    assert_false(fleet_state_assigned(yard_state(), id)->is_online);
}

static void a_new_master_changes_nothing(void **state)
{
    open_yard();
    yard_open(1, NULL);
    yard_subscribe("d1", "c1");
    yard_subscribe("d2", "c2");
    AWAIT(yard_worker_of("d1;c1")[0] && yard_worker_of("d2;c2")[0]);
    yard_settle();
    uint64_t epochs[] = {fleet_state_assigned(peers[1].state, "w1")->epoch,
                         fleet_state_assigned(peers[1].state, "w2")->epoch};
    yard_close(0);
    AWAIT(yard_leader() == 1);
    AWAIT(strcmp(yard_owner("w1", 0), "p1") == 0);
    yard_settle();
    assert_true(master_counters(peers[1].master)->plans > 0);
    assert_int_equal(fleet_state_assigned(peers[1].state, "w1")->epoch, epochs[0]);
    assert_int_equal(fleet_state_assigned(peers[1].state, "w2")->epoch, epochs[1]);
    assert_string_equal(yard_owner("w2", 0), "p1");
}

static void a_worker_that_nobody_heard_of_keeps_what_it_has_and_gets_nothing(void **state)
{
    yard_open(0, NULL);
    yard_worker("w1", "");
    yard_put("assigned/w1", "{\"epoch\":0,\"subscriptions\":[\"d1;c1\"],\"leaving\":[]}");
    yard_subscribe("d1", "c1");
    yard_subscribe("d2", "c2");
    AWAIT(yard_owner("w1", 0)[0]); /* named at once, so that somebody hears of it */
    yard_pass(SPAN_S(3));
    AWAIT(yard_reason("d2;c2")[0]);
    assert_true(is_at("d1;c1", "w1"));
    yard_worker("w2", "");
    yard_hear("w2", true);
    AWAIT(is_at("d2;c2", "w2"));
    assert_true(is_at("d1;c1", "w1"));
    yard_pass(SPAN_S(15));
    AWAIT(is_at("d1;c1", "w2"));
}

static void the_first_plan_waits_for_workers_that_were_just_registered(void **state)
{
    yard_open(0, NULL);
    yard_pass(SPAN_S(3)); /* the process is not new */
    yard_hear("nobody", false);
    yard_worker("w1", "");
    yard_worker("w2", "");
    yard_hear("w1", true);
    yard_subscribe("d1", "c1");
    yard_subscribe("d1", "c2");
    yard_settle();
    assert_int_equal(yard_assigned("w1"), 0);
    yard_hear("w2", true);
    AWAIT(yard_assigned("w1") == 1 && yard_assigned("w2") == 1);
}

static void a_master_that_was_superseded_writes_no_more(void **state)
{
    char json[128];
    uint64_t epoch;

    open_yard();
    yard_subscribe("d1", "c1");
    AWAIT(yard_worker_of("d1;c1")[0]);
    yard_settle();
    assert_true(master_leads(peers[0].master, &epoch));
    (void)snprintf(json, sizeof(json), "{\"epoch\":%llu,\"workers\":{\"w1\":[\"p7\"]}}",
                   (unsigned long long)epoch + 1);
    yard_put("owners", json);
    AWAIT(yard_has_event("master-superseded"));
    uint64_t writes = master_counters(peers[0].master)->writes;
    yard_subscribe("d2", "c2");
    yard_hear("w1", false);
    for (int i = 0; i < 50; i++) {
        (void)uv_run(&loop, UV_RUN_ONCE);
    }
    assert_int_equal(master_counters(peers[0].master)->writes, writes);
    assert_string_equal(yard_worker_of("d2;c2"), "");
}

static void what_another_program_wrote_into_its_keys_is_made_anew(void **state)
{
    static const char *const keys[] = {"owners", "assigned/w1", "assigned/w2"};
    char display[16];

    open_yard();
    yard_confirm_always(true);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        yard_put(keys[i], "no JSON");
        (void)snprintf(display, sizeof(display), "d%zu", i);
        yard_subscribe(display, "c1");
        yard_subscribe(display, "c2");
        AWAIT(has_every_one() && yard_owner("w1", 0)[0] && yard_owner("w2", 0)[0]);
    }
}

static void an_epoch_that_is_none_supersedes_nobody(void **state)
{
    open_yard();
    yard_settle();
    yard_put("owners", "{\"epoch\":-1,\"workers\":{}}");
    yard_subscribe("d1", "c1");
    AWAIT(yard_worker_of("d1;c1")[0] && yard_owner("w1", 0)[0]);
    assert_false(yard_has_event("master-superseded"));
}

static void what_an_older_master_wrote_late_is_put_right(void **state)
{
    open_yard();
    yard_subscribe("d1", "c1");
    AWAIT(yard_worker_of("d1;c1")[0]);
    bool at_first = is_at("d1;c1", "w1");
    yard_settle();
    yard_hear(at_first ? "w2" : "w1", false); /* of one that runs nothing: the yard sees no fault */
    yard_put(at_first ? "assigned/w2" : "assigned/w1",
             "{\"epoch\":0,\"subscriptions\":[\"d1;c1\"],\"leaving\":[]}");
    AWAIT(yard_assigned(at_first ? "w2" : "w1") == 0);
    assert_true(is_at("d1;c1", at_first ? "w1" : "w2"));
    yard_put("owners", "{\"epoch\":0,\"workers\":{}}");
    AWAIT(strcmp(yard_owner("w1", 0), "p0") == 0);
}

static void a_write_that_fails_is_made_again(void **state)
{
    open_yard();
    yard_settle();
    yard_put_fails = 3;
    yard_subscribe("d1", "c1");
    AWAIT(yard_worker_of("d1;c1")[0]);
    assert_int_equal(yard_put_fails, 0);
    assert_true(master_counters(peers[0].master)->failures >= 3);
    assert_true(yard_has_event("master-failed"));
}

static void a_list_of_the_processes_that_fails_is_asked_for_again(void **state)
{
    yard_list_fails = 5;
    yard_open(0, NULL);
    yard_worker("w1", "");
    yard_hear("w1", true);
    AWAIT(yard_leader() == 0);
    while (yard_list_fails > 0) {
        assert_string_equal(yard_owner("w1", 0), "");
        yard_pass(SPAN_S(1));
    }
    yard_pass(SPAN_S(1));
    AWAIT(strcmp(yard_owner("w1", 0), "p0") == 0);
}

/* The list of the dead worker could not be emptied: then nobody else may have what is in it. */
static void nothing_is_given_while_the_list_of_a_dead_worker_cannot_be_written(void **state)
{
    open_yard();
    yard_subscribe("d1", "c1");
    AWAIT(yard_worker_of("d1;c1")[0]);
    bool at_first = is_at("d1;c1", "w1");
    yard_settle();
    yard_put_fails = 1;
    yard_hear(at_first ? "w1" : "w2", false);
    AWAIT(yard_put_fails == 0);
    assert_true(is_at("d1;c1", at_first ? "w1" : "w2"));
    AWAIT(is_at("d1;c1", at_first ? "w2" : "w1"));
}

/* A master that leads no more while a write is under way: its end changes nothing. */
static void a_write_may_be_answered_after_the_end_of_its_master(void **state)
{
    open_yard();
    yard_open(1, NULL);
    yard_settle();
    yard_puts_linger = true;
    yard_subscribe("d1", "c1");
    yard_close(0);
    AWAIT(yard_worker_of("d1;c1")[0]);
}

/* The master is about to give something to a worker, which is returned, and the write is kept; the
 * next master would give it to another one. */
static const char *open_yard_with_a_write_under_way(void)
{
    open_yard();
    yard_open(1, NULL);
    yard_settle();
    yard_keep(0);
    yard_subscribe("d1", "c1");
    AWAIT(yard_kept()[0]);
    const char *id = strstr(yard_kept(), "w1") ? "w1" : "w2";
    yard_worker(id, ",\"cordoned\":true");
    return id;
}

static void run_for_a_while(void)
{
    for (int i = 0; i < 100; i++) {
        (void)uv_run(&loop, UV_RUN_ONCE);
    }
}

/* Or it would be stored after the next one has read the state. */
static void a_master_leaves_when_its_writes_are_answered(void **state)
{
    const char *id = open_yard_with_a_write_under_way();
    yard_leave(0);
    run_for_a_while();
    yard_keep(-1);
    yard_close(0);
    AWAIT(yard_leader() == 1);
    yard_settle();
    assert_true(is_at("d1;c1", id));
}

static void on_passed(void *userdata, int code, const struct baton_error *error)
{
    *(int *)userdata = code;
}

static void pass_to_the_other(int *ret_code)
{
    const struct handover_request request = {.kind = HANDOVER_RESIGN,
                                             .to = "p1",
                                             .deadline = instant_add(clock_now(), SPAN_S(10)),
                                             .done = on_passed,
                                             .userdata = ret_code};

    *ret_code = 1;
    assert_int_equal(handover_begin(master_election(peers[0].master), &request, NULL), BATON_OK);
    run_for_a_while();
}

static void a_master_passes_leadership_on_when_its_writes_are_answered(void **state)
{
    int code;
    const char *id = open_yard_with_a_write_under_way();
    pass_to_the_other(&code);
    yard_keep(-1);
    AWAIT(code <= 0 && yard_leader() == 1);
    assert_int_equal(code, BATON_OK);
    yard_settle();
    assert_true(is_at("d1;c1", id));
}

static void a_master_that_passes_leadership_on_may_leave(void **state)
{
    int code;
    const char *id = open_yard_with_a_write_under_way();
    pass_to_the_other(&code);
    yard_leave(0);
    run_for_a_while();
    yard_keep(-1);
    yard_close(0);
    AWAIT(code <= 0 && yard_leader() == 1);
    yard_settle();
    assert_true(is_at("d1;c1", id));
}

static void a_move_is_carried_out_once(void **state)
{
    open_yard();
    yard_subscribe("d1", "c1");
    AWAIT(yard_worker_of("d1;c1")[0]);
    const char *other = is_at("d1;c1", "w1") ? "w2" : "w1";
    char json[32];
    (void)snprintf(json, sizeof(json), "{\"to\":\"%s\"}", other);
    yard_put("move/d1;c1", json);
    AWAIT(is_at("d1;c1", other));
    AWAIT(!fleet_state_next_move(yard_state(), NULL));
    assert_true(is_at("d1;c1", other));
    assert_int_equal(master_counters(peers[0].master)->moves, 1);
}

static void a_move_that_cannot_be_ends_without_effect(void **state)
{
    open_yard();
    yard_subscribe("d1", "c1");
    AWAIT(yard_worker_of("d1;c1")[0]);
    bool at_first = is_at("d1;c1", "w1");
    yard_put("move/d1;c1", "{\"to\":\"nobody\"}");
    AWAIT(!fleet_state_next_move(yard_state(), NULL));
    yard_put("move/d9;c9", "{\"to\":\"w1\"}");
    AWAIT(!fleet_state_next_move(yard_state(), NULL));
    assert_true(is_at("d1;c1", at_first ? "w1" : "w2"));
}

static void a_worker_that_is_registered_no_more_has_no_list(void **state)
{
    open_yard();
    yard_subscribe("d1", "c1");
    AWAIT(yard_worker_of("d1;c1")[0]);
    bool at_first = is_at("d1;c1", "w1");
    yard_hear(at_first ? "w1" : "w2", false);
    yard_put(at_first ? "worker/w1" : "worker/w2", NULL);
    AWAIT(is_at("d1;c1", at_first ? "w2" : "w1"));
    AWAIT(!fleet_state_assigned(yard_state(), at_first ? "w1" : "w2"));
    AWAIT(yard_owner(at_first ? "w1" : "w2", 0)[0] == '\0');
}

static void what_is_deleted_leaves_its_worker(void **state)
{
    open_yard();
    yard_subscribe("d1", "c1");
    AWAIT(yard_worker_of("d1;c1")[0]);
    const char *worker = is_at("d1;c1", "w1") ? "w1" : "w2";
    yard_unsubscribe("d1", "c1");
    AWAIT(yard_assigned(worker) == 0 && !yard_is_leaving(worker, "d1;c1"));
}

static void a_camera_that_does_not_exist_is_the_reason(void **state)
{
    open_yard();
    yard_subscribe("d1", "c1");
    AWAIT(yard_worker_of("d1;c1")[0]);
    yard_put("camera/c1", NULL);
    AWAIT(strcmp(yard_reason("d1;c1"), "its camera does not exist") == 0);
    AWAIT(yard_worker_of("d1;c1")[0] == '\0');
}

static void workers_are_shared_by_all_processes(void **state)
{
    yard_open(0, NULL);
    for (int i = 0; i < 4; i++) {
        yard_worker((const char *[]){"w1", "w2", "w3", "w4"}[i], "");
    }
    yard_open(1, NULL);
    AWAIT(yard_owner("w4", 1)[0]);
    int firsts = 0;
    for (int i = 0; i < 4; i++) {
        const char *id = (const char *[]){"w1", "w2", "w3", "w4"}[i];
        firsts += strcmp(yard_owner(id, 0), "p0") == 0;
        assert_string_not_equal(yard_owner(id, 0), yard_owner(id, 1));
    }
    assert_int_equal(firsts, 2);
    yard_close(1);
    AWAIT(yard_owner("w4", 1)[0] == '\0');
    assert_string_equal(yard_owner("w1", 0), "p0");
    assert_true(yard_has_event("member-joined"));
    assert_true(yard_has_event("leader-changed"));
}

static void two_processes_of_one_name_are_reported(void **state)
{
    yard_open(0, NULL);
    yard_open_as(1, "p1", NULL);
    yard_open_as(2, "p1", NULL);
    AWAIT(yard_has_event("process-twice"));
}

/* ---- Discovery ------------------------------------------------------------------------------- */

static const char *const urls[] = {"dns+ws://workers:8000", NULL};

static void what_is_found_is_registered(void **state)
{
    static const struct discovered found[] = {{"a-8000", "ws://a:8000", "dns"},
                                              {"b-8000", "ws://b:8000", "dns"}};

    yard_find(found, 2, true);
    yard_open(0, urls);
    AWAIT(fleet_state_worker(yard_state(), "b-8000"));
    AWAIT(yard_owner("b-8000", 0)[0]);
    assert_string_equal(fleet_state_worker(yard_state(), "a-8000")->url, "ws://a:8000");
    assert_string_equal(fleet_state_worker(yard_state(), "a-8000")->source, "dns");
}

static void what_people_set_stays_when_a_worker_is_found_elsewhere(void **state)
{
    static const struct discovered found[] = {{"a-8000", "ws://new:8000", "dns"},
                                              {"r", "ws://new:8000", "static"}};

    yard_open(0, urls);
    yard_worker("a-8000", ",\"source\":\"dns\",\"labels\":\"gpu\",\"cordoned\":true,"
                          "\"maxSubscriptions\":7");
    yard_worker("r", "");
    yard_find(found, 2, true);
    AWAIT(strcmp(fleet_state_worker(yard_state(), "a-8000")->url, "ws://new:8000") == 0);
    yard_settle();
    assert_string_equal(fleet_state_worker(yard_state(), "a-8000")->labels, "gpu");
    assert_true(fleet_state_worker(yard_state(), "a-8000")->is_cordoned);
    assert_int_equal(fleet_state_worker(yard_state(), "a-8000")->subscriptions_max, 7);
    assert_string_equal(fleet_state_worker(yard_state(), "r")->url, "ws://r:8000");
}

static void what_is_found_no_more_goes_once_it_is_offline(void **state)
{
    static const struct discovered found[] = {{"a-8000", "ws://a:8000", "dns"},
                                              {"b-8000", "ws://b:8000", "dns"}};

    yard_find(found, 2, true);
    yard_open(0, urls);
    AWAIT(fleet_state_worker(yard_state(), "b-8000"));
    yard_hear("a-8000", true);
    yard_hear("b-8000", true);
    yard_find(found, 1, true);
    yard_settle();
    assert_non_null(fleet_state_worker(yard_state(), "b-8000"));
    yard_find(found, 1, false);
    yard_hear("b-8000", false);
    yard_settle();
    assert_non_null(fleet_state_worker(yard_state(), "b-8000"));
    yard_find(found, 1, true);
    AWAIT(!fleet_state_worker(yard_state(), "b-8000"));
    yard_hear("a-8000", false);
    yard_settle();
    assert_non_null(fleet_state_worker(yard_state(), "a-8000"));
}

static void a_worker_that_a_file_declares_stays_while_it_is_offline(void **state)
{
    static const struct discovered found[] = {{"a-8000", "ws://a:8000", "dns"},
                                              {"f-8000", "ws://f:8000", "static"}};

    yard_find(found, 2, true);
    yard_open(0, urls);
    yard_worker("f-8000", ",\"source\":\"declared\"");
    yard_worker("g-8000", ",\"source\":\"declared\"");
    AWAIT(fleet_state_worker(yard_state(), "a-8000"));
    yard_hear("f-8000", false);
    yard_hear("g-8000", false);
    yard_settle();
    assert_non_null(fleet_state_worker(yard_state(), "g-8000"));
    assert_string_equal(fleet_state_worker(yard_state(), "f-8000")->source, "declared");
}

static void a_worker_that_is_registered_under_another_id_is_not_registered_twice(void **state)
{
    static const struct discovered found[] = {{"a-8000", "ws://a:8000/", "dns"},
                                              {"b-8000", "ws://b:8000/", "dns"}};

    yard_open(0, urls);
    yard_worker("a", "");
    yard_find(found, 2, true);
    AWAIT(fleet_state_worker(yard_state(), "b-8000"));
    yard_settle();
    assert_null(fleet_state_worker(yard_state(), "a-8000"));
    assert_non_null(fleet_state_worker(yard_state(), "a"));
}

static void a_url_that_is_none_is_refused(void **state)
{
    static const char *const bad[] = {"bad"};
    struct master_config config = {.worker_urls = bad, .worker_count = 1};
    struct master *master = NULL;
    struct baton_error error;

    yard_open(0, NULL);
    config.state = peers[0].state;
    config.table = peers[0].table;
    assert_int_equal(master_open(&master, &config, &error), BATON_EINVAL);
    assert_null(master);
}

/* ---- Load ------------------------------------------------------------------------------------ */

static void a_loaded_worker_gets_nothing_new(void **state)
{
    open_yard();
    yard_settle();
    yard_report("w1", 90);
    for (int i = 0; i < 3; i++) {
        yard_subscribe("d1", (const char *[]){"c1", "c2", "c3"}[i]);
    }
    AWAIT(yard_assigned("w2") == 3);
}

/* ---- All at random --------------------------------------------------------------------------- */

static uint64_t random_state;

static size_t draw(size_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % below;
}

static void something_happens(void)
{
    static const char *const names[] = {"w1", "w2", "w3"};
    static const char *const cameras[] = {"c1", "c2", "c3", "c4"};
    static const char *const displays[] = {"d1", "d2"};
    static const char *const flags[] = {"", ",\"draining\":true", ",\"cordoned\":true"};

    switch (draw(9)) {
    case 0:
        yard_hear(names[draw(3)], draw(3) > 0);
        break;
    case 1:
        yard_worker(names[draw(3)], flags[draw(3)]);
        break;
    case 2:
    case 3:
        yard_subscribe(displays[draw(2)], cameras[draw(4)]);
        break;
    case 4:
        if (fleet_state_count(yard_state(), FLEET_SUBSCRIPTION) > 0) {
            const struct fleet_object *first =
                fleet_state_next(yard_state(), FLEET_SUBSCRIPTION, NULL);
            yard_unsubscribe(first->subscription.display, first->subscription.camera);
        }
        break;
    case 5:
        yard_put_fails = (int)draw(3);
        yard_puts_linger = draw(2) == 0;
        break;
    case 6: {
        int leader = yard_leader();
        if (leader >= 0) {
            yard_close(leader);
            yard_open(leader, NULL);
        }
        break;
    }
    case 7: {
        int number = (int)draw(2);
        yard_lag(number, draw(2) * draw(20));
        break;
    }
    default:
        yard_confirm_always(draw(2) == 0);
        for (size_t i = 0; i < 10; i++) {
            (void)uv_run(&loop, UV_RUN_ONCE);
        }
        break;
    }
}

/* The yard fails the test if two workers may run the same at any moment. */
static void whatever_happens_no_two_workers_have_the_same_and_in_the_end_all_have_one(void **state)
{
    yard_open(0, NULL);
    yard_open(1, NULL);
    random_state = 1;
    for (int round = 0; round < 8; round++) {
        for (int i = 0; i < 100; i++) {
            something_happens();
        }
        yard_put_fails = 0;
        yard_puts_linger = false;
        yard_lag(0, 0);
        yard_lag(1, 0);
        yard_confirm_always(true);
        for (int i = 0; i < 3; i++) {
            const char *id = (const char *[]){"w1", "w2", "w3"}[i];
            yard_worker(id, "");
            yard_hear(id, true);
        }
        AWAIT(has_every_one());
        yard_settle();
        assert_true(has_every_one());
    }
}

int main(int count, char **arguments)
{
#define YARD_TEST(name) cmocka_unit_test_setup_teardown(name, yard_set_up, yard_tear_down)
    const struct CMUnitTest tests[] = {
        YARD_TEST(a_subscription_gets_a_worker_and_the_worker_an_owner),
        YARD_TEST(what_a_dead_worker_had_goes_to_another_one),
        YARD_TEST(the_only_worker_keeps_its_list_while_it_is_away),
        YARD_TEST(a_worker_that_drains_lets_go_before_another_one_gets_it),
        YARD_TEST(a_new_master_changes_nothing),
        YARD_TEST(a_master_that_was_superseded_writes_no_more),
        YARD_TEST(what_another_program_wrote_into_its_keys_is_made_anew),
        YARD_TEST(an_epoch_that_is_none_supersedes_nobody),
        YARD_TEST(what_an_older_master_wrote_late_is_put_right),
        YARD_TEST(a_write_that_fails_is_made_again),
        YARD_TEST(a_list_of_the_processes_that_fails_is_asked_for_again),
        YARD_TEST(nothing_is_given_while_the_list_of_a_dead_worker_cannot_be_written),
        YARD_TEST(a_write_may_be_answered_after_the_end_of_its_master),
        YARD_TEST(a_master_leaves_when_its_writes_are_answered),
        YARD_TEST(a_master_passes_leadership_on_when_its_writes_are_answered),
        YARD_TEST(a_master_that_passes_leadership_on_may_leave),
        YARD_TEST(a_move_is_carried_out_once),
        YARD_TEST(a_move_that_cannot_be_ends_without_effect),
        YARD_TEST(a_worker_that_is_registered_no_more_has_no_list),
        YARD_TEST(what_is_deleted_leaves_its_worker),
        YARD_TEST(a_camera_that_does_not_exist_is_the_reason),
        YARD_TEST(workers_are_shared_by_all_processes),
        YARD_TEST(what_is_found_is_registered),
        YARD_TEST(what_people_set_stays_when_a_worker_is_found_elsewhere),
        YARD_TEST(what_is_found_no_more_goes_once_it_is_offline),
        YARD_TEST(a_worker_that_a_file_declares_stays_while_it_is_offline),
        YARD_TEST(a_worker_that_is_registered_under_another_id_is_not_registered_twice),
        YARD_TEST(a_url_that_is_none_is_refused),
        YARD_TEST(a_loaded_worker_gets_nothing_new),
        YARD_TEST(whatever_happens_no_two_workers_have_the_same_and_in_the_end_all_have_one),
    };
    /* The leases of a server would end when the clock is put forward, or another one lead that was
     * to be late. */
    const struct CMUnitTest tests_of_time[] = {
        YARD_TEST(a_worker_that_comes_back_at_a_late_owner_does_not_get_its_old_list),
        YARD_TEST(a_new_master_that_hears_late_does_not_give_what_was_given),
        YARD_TEST(a_new_master_that_hears_late_leaves_a_new_worker_its_list),
        YARD_TEST(the_first_plan_waits_for_workers_that_were_just_registered),
        YARD_TEST(what_an_offline_worker_had_stays_while_it_is_marked_but_not_for_ever),
        YARD_TEST(a_worker_that_never_lets_go_is_passed_over_with_an_alarm),
        YARD_TEST(a_worker_that_nobody_heard_of_keeps_what_it_has_and_gets_nothing),
    };
    /* memory: refuses the second one. */
    const struct CMUnitTest tests_of_names[] = {
        YARD_TEST(two_processes_of_one_name_are_reported),
    };
    int failed;

    if (count != 2 || !yard_choose(arguments[1])) {
        return 64;
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (strcmp(arguments[1], "memory") == 0) {
        failed += cmocka_run_group_tests(tests_of_time, NULL, NULL);
    } else {
        failed += cmocka_run_group_tests(tests_of_names, NULL, NULL);
    }
    yard_end();
    return failed;
}
