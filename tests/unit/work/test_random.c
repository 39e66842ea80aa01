/* Random moves, claims and buckets, beside a model that is too simple to be wrong: arrays, and a
 * search through all of them. */
#include "ledger_tools.h"

enum { ITEMS = 40, WORKERS = 4, SESSIONS = 3, STEPS = 400, ROUNDS = 150 };

static uint64_t state_of_random = 1;

static uint64_t draw(uint64_t below)
{
    state_of_random ^= state_of_random << 13;
    state_of_random ^= state_of_random >> 7;
    state_of_random ^= state_of_random << 17;
    return state_of_random % below;
}

static void seed(uint64_t round)
{
    state_of_random = round * 0x9e3779b97f4a7c15u + 1;
}

struct model {
    bool is_there;
    enum work_state state;
    uint64_t epoch, session;
    unsigned worker;
    uint32_t attempt, failures, losses;
    int32_t priority;
    uint32_t retries;
    int64_t since;
    uint64_t turn; /* when it became idle */
};

struct game {
    struct ledger *ledger;
    struct model items[ITEMS];
    uint64_t ended[WORKERS]; /* the latest session that has */
    uint64_t floors[LEDGER_BUCKETS];
    int64_t now;
    uint64_t turns;
};

static const char *id_of(unsigned at)
{
    static char id[16];
    (void)snprintf(id, sizeof(id), "item.%u", at);
    return id;
}

static const char *worker_of(unsigned at)
{
    static char name[16];
    (void)snprintf(name, sizeof(name), "w%u", at);
    return name;
}

static struct work_item *item_of(const struct model *model, unsigned at)
{
    char text[128];
    (void)snprintf(text, sizeof(text), "{'id':'%s','priority':%d,'retries':%u}", id_of(at),
                   model->priority, model->retries);
    return make_item(text);
}

/* ---- The model beside the ledger ------------------------------------------------------------- */

static void assert_is(const struct game *game, unsigned at)
{
    const struct model *model = &game->items[at];
    const struct ledger_entry *entry = ledger_find(game->ledger, id_of(at));

    assert_true((entry != NULL) == model->is_there);
    if (!entry) {
        return;
    }
    assert_int_equal(entry->state, model->state);
    assert_int_equal(entry->epoch, model->epoch);
    assert_int_equal(entry->attempt, model->attempt);
    assert_int_equal(entry->failures, model->failures);
    assert_int_equal(entry->losses, model->losses);
    assert_int_equal(entry->since_unix_ms, model->since);
    assert_true((entry->place != NULL) == (model->state == WORK_PROCESSING));
    if (entry->place) {
        assert_string_equal(ledger_place_worker(entry->place), worker_of(model->worker));
        assert_int_equal(ledger_place_session(entry->place), model->session);
    }
}

static void assert_places(const struct game *game)
{
    size_t held = 0;

    for (unsigned worker = 0; worker < WORKERS; worker++) {
        for (uint64_t session = 1; session <= SESSIONS; session++) {
            const struct ledger_place *place =
                ledger_place_find(game->ledger, worker_of(worker), session);
            size_t count = 0, listed = 0;

            for (unsigned i = 0; i < ITEMS; i++) {
                const struct model *model = &game->items[i];
                count += model->is_there && model->state == WORK_PROCESSING &&
                         model->worker == worker && model->session == session;
            }
            assert_true((place != NULL) == (count > 0));
            for (const struct ledger_entry *at = place ? ledger_place_entries(place) : NULL; at;
                 at = at->next) {
                assert_ptr_equal(at->place, place);
                listed++;
            }
            assert_int_equal(listed, count);
            assert_int_equal(place ? ledger_place_count(place) : 0, count);
            held += count;
        }
    }
    assert_int_equal(ledger_count(game->ledger, WORK_PROCESSING), held);
}

static bool is_before(const struct model *a, const struct model *b)
{
    return a->priority != b->priority ? a->priority > b->priority
           : a->since != b->since     ? a->since < b->since
                                      : a->turn < b->turn;
}

/* Looks for the best of those that are left, again and again. */
static void assert_idle(const struct game *game)
{
    const struct ledger_entry *entry = ledger_idle(game->ledger);
    bool was_seen[ITEMS] = {false};

    while (true) {
        int best = -1;

        for (int i = 0; i < ITEMS; i++) {
            if (game->items[i].is_there && game->items[i].state == WORK_IDLE && !was_seen[i] &&
                (best < 0 || is_before(&game->items[i], &game->items[best]))) {
                best = i;
            }
        }
        assert_true((entry != NULL) == (best >= 0));
        if (!entry) {
            return;
        }
        assert_string_equal(entry->id, id_of((unsigned)best));
        was_seen[best] = true;
        entry = entry->next;
    }
}

static void assert_sound(const struct game *game)
{
    for (unsigned i = 0; i < ITEMS; i++) {
        assert_is(game, i);
    }
    assert_places(game);
    if (draw(3) == 0) { /* more moves between: then more of them are not sorted yet */
        assert_idle(game);
    }
}

/* ---- Moves ----------------------------------------------------------------------------------- */

static void become_idle(struct game *game, struct model *model)
{
    model->state = WORK_IDLE;
    model->since = game->now;
    model->turn = ++game->turns;
}

static void play_new(struct game *game, struct model *model, unsigned at)
{
    struct work_item *item;
    struct ledger_entry *entry;

    *model = (struct model){
        .is_there = true, .priority = (int32_t)draw(3), .retries = (uint32_t)draw(3)};
    become_idle(game, model);
    item = item_of(model, at);
    assert_int_equal(ledger_submit(game->ledger, item, game->now, &entry), BATON_OK);
    work_item_unref(item);
}

static void play_place(struct game *game, struct model *model, struct ledger_entry *entry)
{
    uint64_t leader = draw(20), floor = game->floors[entry->bucket];

    model->worker = (unsigned)draw(WORKERS);
    model->session = 1 + draw(SESSIONS);
    model->epoch = 1 + (model->epoch > floor ? model->epoch : floor);
    model->epoch = model->epoch > leader ? model->epoch : leader;
    model->attempt++;
    model->state = WORK_PROCESSING;
    model->since = game->now;
    assert_int_equal(ledger_place(game->ledger, entry, worker_of(model->worker), model->session,
                                  leader, game->now),
                     BATON_OK);
}

static void play_end(struct game *game, struct model *model, struct ledger_entry *entry)
{
    switch (draw(4)) {
    case 0:
        become_idle(game, model);
        ledger_release(game->ledger, entry, game->now);
        break;
    case 1:
        become_idle(game, model);
        model->losses++;
        ledger_lose(game->ledger, entry, game->now);
        break;
    case 2:
        become_idle(game, model);
        model->state = ++model->failures > model->retries ? WORK_FAILED : WORK_IDLE;
        ledger_fail(game->ledger, entry, 1, game->now);
        break;
    default:
        model->state = (enum work_state)(WORK_COMPLETED + (int)draw(3));
        model->since = game->now;
        ledger_finish(game->ledger, entry, model->state, 0, game->now);
        break;
    }
}

static void play_claim(struct game *game, struct model *model, unsigned at)
{
    unsigned worker = (unsigned)draw(WORKERS);
    uint64_t session = 1 + draw(SESSIONS);
    const struct work_claim what = {.id = (char *)id_of(at), .epoch = 1 + draw(model->epoch + 3)};
    bool has_ended = session <= game->ended[worker];
    bool is_here =
        model->state == WORK_PROCESSING && model->worker == worker && model->session == session;
    enum ledger_verdict verdict, expected = LEDGER_STALE;

    if (!has_ended && !model->is_there) {
        expected = LEDGER_UNKNOWN;
    } else if (!has_ended && work_state_is_final(model->state)) {
        expected = LEDGER_FINAL;
    } else if (!has_ended && what.epoch > model->epoch) {
        expected = LEDGER_ADOPTED;
        model->worker = worker;
        model->session = session;
        model->epoch = what.epoch;
        model->attempt += model->attempt == 0;
        model->state = WORK_PROCESSING;
        model->since = game->now;
    } else if (!has_ended && what.epoch == model->epoch && is_here) {
        expected = LEDGER_AGREES;
    }
    assert_int_equal(
        ledger_claim(game->ledger, worker_of(worker), session, &what, false, game->now, &verdict),
        BATON_OK);
    assert_int_equal(verdict, expected);
}

/* By the same bytes: nothing changes but the order of what became idle in the same millisecond. */
static void play_read_anew(struct game *game)
{
    struct ledger *copy = ledger_new();

    copy_buckets(game->ledger, copy);
    assert_true(ledger_equal(game->ledger, copy));
    for (unsigned i = 0; i < ITEMS; i++) {
        struct work_item *item = item_of(&game->items[i], i);
        struct ledger_entry *entry;

        if (game->items[i].is_there) {
            assert_int_equal(ledger_submit(copy, item, game->now, &entry), BATON_OK);
            game->items[i].turn = ++game->turns;
        }
        work_item_unref(item);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        assert_int_equal(ledger_end_sessions(copy, worker_of(i), game->ended[i]), BATON_OK);
    }
    ledger_free(game->ledger);
    game->ledger = copy;
}

static void step(struct game *game)
{
    unsigned at = (unsigned)draw(ITEMS), worker = (unsigned)draw(WORKERS);
    struct model *model = &game->items[at];
    struct ledger_entry *entry = ledger_find(game->ledger, id_of(at));

    game->now += (int64_t)draw(2);
    if (draw(50) == 0) {
        play_read_anew(game);
    } else if (draw(60) == 0) {
        uint64_t session = draw(SESSIONS);
        game->ended[worker] = session > game->ended[worker] ? session : game->ended[worker];
        assert_int_equal(ledger_end_sessions(game->ledger, worker_of(worker), session), BATON_OK);
    } else if (draw(4) == 0) {
        play_claim(game, model, at);
    } else if (!model->is_there) {
        play_new(game, model, at);
    } else if (model->state == WORK_IDLE) {
        play_place(game, model, entry);
    } else if (model->state == WORK_PROCESSING) {
        play_end(game, model, entry);
    } else {
        uint64_t *floor = &game->floors[entry->bucket];

        *floor = model->epoch > *floor ? model->epoch : *floor;
        model->is_there = false;
        ledger_remove(game->ledger, entry);
    }
    assert_sound(game);
}

static void the_ledger_is_as_a_simple_model_has_it(void **state)
{
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        struct game game = {.ledger = ledger_new()};

        seed(round);
        for (int i = 0; i < STEPS; i++) {
            step(&game);
        }
        ledger_free(game.ledger);
    }
}

/* ---- Rebuilding ------------------------------------------------------------------------------ */

enum { CLAIMS = 60 };

struct heard {
    struct work_claim claim;
    unsigned worker;
    uint64_t session;
};

static void hear(struct ledger *ledger, const struct heard *heard)
{
    enum ledger_verdict verdict;

    assert_int_equal(ledger_claim(ledger, worker_of(heard->worker), heard->session, &heard->claim,
                                  true, NOW_MS, &verdict),
                     BATON_OK);
}

static void shuffle(struct heard *heard, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        size_t at = (size_t)draw(i);
        struct heard swapped = heard[at];

        heard[at] = heard[i - 1];
        heard[i - 1] = swapped;
    }
}

/* Of one item no two placings have the same epoch. */
static size_t draw_claims(struct heard ret[static CLAIMS], struct work_item *const *items)
{
    bool is_used[ITEMS][32] = {{false}};
    size_t count = 0;

    for (int i = 0; i < CLAIMS; i++) {
        unsigned at = (unsigned)draw(ITEMS), epoch = 1 + (unsigned)draw(31);

        if (!is_used[at][epoch]) {
            is_used[at][epoch] = true;
            ret[count++] =
                (struct heard){.claim = {.id = items[at]->id, .epoch = epoch, .item = items[at]},
                               .worker = (unsigned)draw(WORKERS),
                               .session = 1 + draw(SESSIONS)};
        }
    }
    return count;
}

static void the_same_claims_in_any_order_end_in_the_same_ledger(void **state)
{
    struct work_item *items[ITEMS];

    for (unsigned i = 0; i < ITEMS; i++) {
        items[i] = item_of(&(struct model){.priority = 1}, i);
    }
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        struct heard heard[CLAIMS];
        struct ledger *first = ledger_new(), *then = ledger_new();
        size_t count;

        seed(round);
        count = draw_claims(heard, items);
        for (size_t i = 0; i < count; i++) {
            hear(first, &heard[i]);
        }
        shuffle(heard, count);
        for (size_t i = 0; i < 2 * count; i++) { /* and again: workers repeat what they hold */
            hear(then, &heard[i % count]);
        }
        assert_true(ledger_equal(first, then));
        ledger_free(first);
        ledger_free(then);
    }
    for (unsigned i = 0; i < ITEMS; i++) {
        work_item_unref(items[i]);
    }
}

static void hear_all_workers(const struct ledger *of, struct ledger *rebuilt)
{
    for (const struct ledger_entry *at = ledger_next(of, NULL); at; at = ledger_next(of, at)) {
        const struct work_claim what = {.id = (char *)at->id, .epoch = at->epoch, .item = at->item};
        enum ledger_verdict verdict;

        if (at->state == WORK_PROCESSING) {
            assert_int_equal(ledger_claim(rebuilt, ledger_place_worker(at->place),
                                          ledger_place_session(at->place), &what, true, NOW_MS,
                                          &verdict),
                             BATON_OK);
            assert_int_equal(verdict, LEDGER_ADOPTED);
        }
    }
}

static void what_workers_hold_is_rebuilt_as_the_buckets_had_it(void **state)
{
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        struct game game = {.ledger = ledger_new()};
        struct ledger *decoded = ledger_new(), *rebuilt = ledger_new();

        seed(round);
        for (int i = 0; i < STEPS / 4; i++) {
            step(&game);
        }
        copy_buckets(game.ledger, decoded);
        hear_all_workers(game.ledger, rebuilt);
        for (const struct ledger_entry *at = ledger_next(decoded, NULL); at;
             at = ledger_next(decoded, at)) {
            const struct ledger_entry *got = ledger_find(rebuilt, at->id);

            assert_true((got != NULL) == (at->state == WORK_PROCESSING));
            if (got) {
                assert_int_equal(got->state, WORK_PROCESSING);
                assert_int_equal(got->epoch, at->epoch);
                assert_string_equal(ledger_place_worker(got->place),
                                    ledger_place_worker(at->place));
                assert_int_equal(ledger_place_session(got->place), ledger_place_session(at->place));
                assert_non_null(got->item);
            }
        }
        assert_int_equal(ledger_count(rebuilt, WORK_PROCESSING),
                         ledger_count(decoded, WORK_PROCESSING));
        assert_int_equal(ledger_count(rebuilt, WORK_IDLE), 0);
        ledger_free(decoded);
        ledger_free(rebuilt);
        ledger_free(game.ledger);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ledger_is_as_a_simple_model_has_it),
        cmocka_unit_test(the_same_claims_in_any_order_end_in_the_same_ledger),
        cmocka_unit_test(what_workers_hold_is_rebuilt_as_the_buckets_had_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
