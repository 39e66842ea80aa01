/* The rules of claims, placings and buckets, each by itself; and each with the planted bug that
 * breaks it. The ledger is built here with these bugs. */
#include "ledger_tools.h"
#include "talk.h"

#include "work/mutants.h"

_Thread_local enum work_mutant work_mutant;

static bool is_at(const struct ledger *ledger, const char *id, const char *worker, uint64_t session,
                  uint64_t epoch)
{
    const struct ledger_entry *entry = ledger_find(ledger, id);

    return entry && entry->state == WORK_PROCESSING && entry->epoch == epoch &&
           strcmp(ledger_place_worker(entry->place), worker) == 0 &&
           ledger_place_session(entry->place) == session;
}

/* ---- Claims ---------------------------------------------------------------------------------- */

static bool of_two_claims_the_higher_epoch_wins(struct ledger *ledger)
{
    bool holds;

    (void)submit_id(ledger, "a");
    (void)submit_id(ledger, "b");
    holds = claim(ledger, "w", 7, "a", 5) == LEDGER_ADOPTED &&
            claim(ledger, "v", 7, "a", 6) == LEDGER_ADOPTED;
    holds = holds && claim(ledger, "v", 7, "b", 6) == LEDGER_ADOPTED &&
            claim(ledger, "w", 7, "b", 5) == LEDGER_STALE;
    return holds && is_at(ledger, "a", "v", 7, 6) && is_at(ledger, "b", "v", 7, 6);
}

static bool of_two_equal_claims_the_present_place_stays(struct ledger *ledger)
{
    place(ledger, submit_id(ledger, "a"), "w", 7);
    return claim(ledger, "v", 7, "a", 1) == LEDGER_STALE &&
           claim(ledger, "w", 8, "a", 1) == LEDGER_STALE &&
           claim(ledger, "w", 7, "a", 1) == LEDGER_AGREES && is_at(ledger, "a", "w", 7, 1);
}

static bool a_placing_that_is_over_is_not_claimed_again(struct ledger *ledger)
{
    struct ledger_entry *entry = submit_id(ledger, "a");

    place(ledger, entry, "w", 7);
    ledger_release(ledger, entry, NOW_MS);
    return claim(ledger, "w", 7, "a", 1) == LEDGER_STALE && entry->state == WORK_IDLE;
}

static bool a_claim_above_the_ledgers_epoch_is_adopted(struct ledger *ledger)
{
    struct ledger_entry *entry = submit_id(ledger, "a");

    place(ledger, entry, "w", 7);
    entry->told = (struct work_number){1, 1};
    return claim(ledger, "w", 7, "a", 4) == LEDGER_ADOPTED && is_at(ledger, "a", "w", 7, 4) &&
           entry->told.epoch == 0 && entry->change == ledger_change(ledger) &&
           ledger_place(ledger, submit_id(ledger, "b"), "w", 7, 1, NOW_MS) == BATON_OK;
}

static bool a_final_state_wins_over_a_claim_whatever_its_epoch(struct ledger *ledger)
{
    struct ledger_entry *entry = submit_id(ledger, "a");

    place(ledger, entry, "w", 7);
    ledger_finish(ledger, entry, WORK_COMPLETED, 0, NOW_MS);
    return claim(ledger, "w", 7, "a", 1) == LEDGER_FINAL &&
           claim(ledger, "w", 7, "a", 9) == LEDGER_FINAL && entry->state == WORK_COMPLETED;
}

static enum ledger_verdict claim_with_item(struct ledger *ledger, const char *id, bool is_rebuilt)
{
    char text[64];
    struct work_claim what = {.id = (char *)id, .epoch = 5, .progress_permille = 250};
    enum ledger_verdict verdict;

    (void)snprintf(text, sizeof(text), "{'id':'%s','keys':['%s-key']}", id, id);
    what.item = make_item(text);
    assert_int_equal(ledger_claim(ledger, "w", 7, &what, is_rebuilt, NOW_MS, &verdict), BATON_OK);
    work_item_unref(what.item);
    return verdict;
}

static bool an_unknown_item_is_adopted_only_while_the_ledger_is_rebuilt(struct ledger *ledger)
{
    const struct work_claim bare = {.id = "c", .epoch = 5};
    enum ledger_verdict verdict;

    if (claim_with_item(ledger, "a", false) != LEDGER_UNKNOWN || ledger_find(ledger, "a") ||
        claim_with_item(ledger, "b", true) != LEDGER_ADOPTED || !is_at(ledger, "b", "w", 7, 5)) {
        return false;
    }
    assert_int_equal(ledger_claim(ledger, "w", 7, &bare, true, NOW_MS, &verdict), BATON_OK);
    return verdict == LEDGER_UNKNOWN && !ledger_find(ledger, "c") &&
           ledger_find(ledger, "b")->progress_permille == 250 &&
           ledger_find(ledger, "b")->attempt == 1 && ledger_locate(ledger, "b-key");
}

static bool a_claim_of_an_ended_session_counts_for_nothing(struct ledger *ledger)
{
    struct ledger_entry *entry = submit_id(ledger, "a");

    assert_int_equal(ledger_end_sessions(ledger, "w", 7), BATON_OK);
    return claim(ledger, "w", 7, "a", 5) == LEDGER_STALE && entry->state == WORK_IDLE &&
           claim(ledger, "w", 8, "a", 5) == LEDGER_ADOPTED;
}

static bool the_end_of_a_session_is_that_of_the_earlier_ones(struct ledger *ledger)
{
    assert_int_equal(ledger_end_sessions(ledger, "w", 7), BATON_OK);
    assert_int_equal(ledger_end_sessions(ledger, "w", 5), BATON_OK);
    return ledger_has_ended(ledger, "w", 7) && ledger_has_ended(ledger, "w", 6) &&
           ledger_has_ended(ledger, "w", 1) && !ledger_has_ended(ledger, "w", 8) &&
           !ledger_has_ended(ledger, "v", 1);
}

/* ---- Placings -------------------------------------------------------------------------------- */

static bool each_placing_has_a_higher_epoch(struct ledger *ledger)
{
    struct ledger_entry *entry = submit_id(ledger, "a");
    uint64_t first;

    place(ledger, entry, "w", 7);
    first = entry->epoch;
    ledger_release(ledger, entry, NOW_MS);
    place(ledger, entry, "v", 7);
    return entry->epoch > first;
}

static bool a_placing_has_at_least_its_leaders_epoch(struct ledger *ledger)
{
    struct ledger_entry *entry = submit_id(ledger, "a");

    assert_int_equal(ledger_place(ledger, entry, "w", 7, 40, NOW_MS), BATON_OK);
    return entry->epoch == 40;
}

static bool a_placing_marks_its_bucket(struct ledger *ledger)
{
    struct ledger_entry *entry = submit_id(ledger, "a");
    struct buffer bytes;

    encode(ledger, entry->bucket, &bytes);
    buffer_fini(&bytes);
    assert_int_equal(ledger_changed_bucket(ledger, 0), -1);
    place(ledger, entry, "w", 7);
    return ledger_changed_bucket(ledger, 0) == (int)entry->bucket &&
           entry->change == ledger_change(ledger);
}

/* ---- Buckets --------------------------------------------------------------------------------- */

/* The bucket of "a" as another leader has written it. */
static void another_leader_wrote(struct ledger *ledger, const char *worker, uint64_t epoch)
{
    struct ledger *other = ledger_new();
    struct buffer bytes;

    if (worker) {
        assert_int_equal(ledger_place(other, submit_id(other, "a"), worker, 7, epoch, NOW_MS),
                         BATON_OK);
    }
    encode(other, ledger_bucket_of("a"), &bytes);
    assert_int_equal(ledger_decode(ledger, ledger_bucket_of("a"), bytes.data, bytes.bytes, NULL),
                     BATON_OK);
    buffer_fini(&bytes);
    ledger_free(other);
}

static bool a_bucket_that_was_read_anew_has_not_changed(struct ledger *ledger)
{
    (void)submit_id(ledger, "a");
    another_leader_wrote(ledger, "v", 3);
    return ledger_changed_bucket(ledger, 0) == -1 && is_at(ledger, "a", "v", 7, 3);
}

static bool an_entry_that_the_value_lacks_is_gone(struct ledger *ledger)
{
    place(ledger, submit_id(ledger, "a"), "w", 7);
    another_leader_wrote(ledger, NULL, 0);
    return !ledger_find(ledger, "a") && !ledger_place_next(ledger, NULL);
}

static bool an_entry_that_was_placed_anew_was_not_told(struct ledger *ledger)
{
    struct ledger_entry *entry = submit_id(ledger, "a");

    assert_int_equal(ledger_place(ledger, entry, "w", 7, 3, NOW_MS), BATON_OK);
    entry->told = (struct work_number){1, 1};
    entry->wish = WORK_MOVE;
    another_leader_wrote(ledger, "w", 3);
    if (entry->told.epoch != 1 || entry->wish != WORK_MOVE) {
        return false; /* nothing had changed */
    }
    another_leader_wrote(ledger, "v", 3); /* as it must not be, but a store may be restored */
    if (entry->told.epoch != 0 || entry->wish != WORK_STAY) {
        return false;
    }
    entry->told = (struct work_number){1, 2};
    another_leader_wrote(ledger, "v", 4);
    return entry->told.epoch == 0;
}

static bool an_entry_that_is_read_anew_keeps_its_item(struct ledger *ledger)
{
    const struct ledger_entry *entry = submit(ledger, "{'id':'a','keys':['ball']}");

    another_leader_wrote(ledger, "v", 3);
    return ledger_find(ledger, "a") == entry && entry->item && ledger_locate(ledger, "ball");
}

static bool an_entry_of_another_bucket_is_damage(struct ledger *ledger)
{
    return decode(ledger, (ledger_bucket_of("a") + 1) % LEDGER_BUCKETS,
                  "{\"format\":1,\"items\":[[\"a\",\"idle\",\"\",0,0,0,0,0,0,0,0]]}") ==
               BATON_ECORRUPT &&
           !ledger_find(ledger, "a");
}

/* ---- A leader -------------------------------------------------------------------------------- */

static bool what_is_gone_without_a_mark_ends_the_leader(struct talk *talk)
{
    talk_run_a(talk);
    talk_write_key(talk, "ledger", NULL, 0);
    talk_lead(talk, EPOCH + 50);
    talk_tell_read(talk, "ledger");
    talk_tell_read(talk, "s/x");
    talk_write_key(talk, "s/x", NULL, 0);
    talk_tell_key(talk, "s/x");
    talk_load(talk);
    return strcmp(talk_all_of(talk), "resign: lost") == 0;
}

static bool what_is_forgotten_is_read_before_it_is_deleted(struct talk *talk)
{
    talk_run_a(talk);
    (void)talk_done(talk, "w1", 7, "a", EPOCH, true);
    return strcmp(talk_later(talk, (int64_t)KEEP_S * 1000 + 20000), "delete s/x, read r, read k") ==
           0;
}

/* Its item has ended long ago, as the leader knows; somebody else may have removed it. */
static bool a_submission_is_not_deleted_by_what_was_stored_before(struct talk *talk)
{
    talk_run_a(talk);
    (void)talk_done(talk, "w1", 7, "a", EPOCH, true);
    talk->ms += (int64_t)KEEP_S * 1000;
    (void)talk_submit(talk, "y", "{\"id\":\"a\"}");
    return strcmp(talk_later(talk, 20000), "delete s/x, put b") == 0 &&
           strcmp(talk_later(talk, 20000), "delete s/y, read r, read k") == 0;
}

/* ---- All of them ----------------------------------------------------------------------------- */

#define RULE_OF(what, check, bug)                                                                  \
    {                                                                                              \
        .sentence = #check, .what = (check), .mutant = WORK_MUTANT_##bug, .mutant_name = #bug      \
    }
#define RULE(check, mutant)        RULE_OF(of_ledger, check, mutant)
#define LEADER_RULE(check, mutant) RULE_OF(of_leader, check, mutant)
static const struct rule {
    const char *sentence;
    bool (*of_ledger)(struct ledger *ledger); /* one of the two */
    bool (*of_leader)(struct talk *talk);
    enum work_mutant mutant; /* that breaks it */
    const char *mutant_name;
} rules[] = {
    RULE(of_two_claims_the_higher_epoch_wins, LOWER_CLAIM_WINS),
    RULE(of_two_equal_claims_the_present_place_stays, EQUAL_CLAIM_MOVES),
    RULE(a_placing_that_is_over_is_not_claimed_again, EQUAL_CLAIM_MOVES),
    RULE(a_claim_above_the_ledgers_epoch_is_adopted, NEWER_CLAIM_STALE),
    RULE(a_final_state_wins_over_a_claim_whatever_its_epoch, FINAL_REVIVED),
    RULE(an_unknown_item_is_adopted_only_while_the_ledger_is_rebuilt, UNKNOWN_ADOPTED),
    RULE(a_claim_of_an_ended_session_counts_for_nothing, ENDED_SESSION_CLAIMS),
    RULE(the_end_of_a_session_is_that_of_the_earlier_ones, EARLIER_SESSIONS_LIVE),
    RULE(each_placing_has_a_higher_epoch, EPOCH_KEPT),
    RULE(a_placing_has_at_least_its_leaders_epoch, EPOCH_BELOW_LEADER),
    RULE(a_placing_marks_its_bucket, CHANGE_NOT_MARKED),
    RULE(a_bucket_that_was_read_anew_has_not_changed, DECODED_MARK_KEPT),
    RULE(an_entry_that_the_value_lacks_is_gone, REMOVED_ENTRY_STAYS),
    RULE(an_entry_that_was_placed_anew_was_not_told, TOLD_KEPT),
    RULE(an_entry_that_is_read_anew_keeps_its_item, ITEM_FORGOTTEN),
    RULE(an_entry_of_another_bucket_is_damage, FOREIGN_BUCKET_READ),
    LEADER_RULE(what_is_gone_without_a_mark_ends_the_leader, EARLY_LOSS_IGNORED),
    LEADER_RULE(what_is_forgotten_is_read_before_it_is_deleted, REST_DELETED_UNREAD),
    LEADER_RULE(a_submission_is_not_deleted_by_what_was_stored_before, OLD_VIEW_COUNTS),
};

static bool holds_in_a_ledger(const struct rule *rule)
{
    struct ledger *ledger = ledger_new();
    bool holds = rule->of_ledger(ledger);

    ledger_free(ledger);
    return holds;
}

static bool holds_in_a_talk(const struct rule *rule)
{
    void *state = NULL;
    bool holds;

    (void)talk_begin(&state);
    holds = rule->of_leader(state);
    (void)talk_end(&state);
    return holds;
}

static bool holds_with(const struct rule *rule, enum work_mutant mutant)
{
    bool holds;

    work_mutant = mutant;
    holds = rule->of_leader ? holds_in_a_talk(rule) : holds_in_a_ledger(rule);
    work_mutant = WORK_MUTANT_NONE;
    return holds;
}

static void each_rule_holds(void **state)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        if (!holds_with(&rules[i], WORK_MUTANT_NONE)) {
            fail_msg("%s: it is not so", rules[i].sentence);
        }
    }
}

static void each_rule_is_broken_by_its_mutant(void **state)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        if (holds_with(&rules[i], rules[i].mutant)) {
            fail_msg("%s: %s was not caught", rules[i].sentence, rules[i].mutant_name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rule_holds),
        cmocka_unit_test(each_rule_is_broken_by_its_mutant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
