/* Random orders. After each: one holder, who is in the line; epochs grow; a line with an eligible
 * contender has a holder; an order took nothing from another session's holder; and a mirror that
 * heard only of the changes knows every holder. A second node that skips over entries by snapshots
 * ends with the same state, and its own mirror too. */
#include "cmocka_all.h"
#include "sessions/sessions.h"

#include <stdio.h>
#include <string.h>

enum { ELECTIONS = 4, ROUNDS = 200, STEPS = 400 };

struct mirror {
    uint64_t holder[ELECTIONS];
    uint64_t epoch[ELECTIONS];
    int contenders[ELECTIONS];
    int open;
};

static uint64_t state_of_random = 1;

static uint64_t draw(uint64_t below)
{
    state_of_random ^= state_of_random << 13;
    state_of_random ^= state_of_random >> 7;
    state_of_random ^= state_of_random << 17;
    return state_of_random % below;
}

static void mirror_note(void *userdata, const struct session_change *change)
{
    struct mirror *mirror = userdata;
    int at = change->election ? change->election[0] - 'a' : 0;

    switch (change->type) {
    case SESSION_OPENED:
        mirror->open++;
        break;
    case SESSION_ENDED:
        mirror->open--;
        break;
    case SESSION_ENTERED:
        mirror->contenders[at]++;
        break;
    case SESSION_LEFT:
        mirror->contenders[at]--;
        break;
    case SESSION_HELD:
        assert_true(change->epoch > mirror->epoch[at]);
        mirror->holder[at] = change->session;
        mirror->epoch[at] = change->epoch;
        break;
    case SESSION_FREED:
        assert_int_equal(mirror->holder[at], change->session);
        mirror->holder[at] = 0;
        break;
    case SESSION_ASKED:
        assert_int_equal(mirror->holder[at], change->session);
        break;
    }
}

static void assert_sound(const struct sessions *sessions, const struct mirror *mirror)
{
    int open = 0;

    for (const struct session *at = sessions_next(sessions, NULL); at;
         at = sessions_next(sessions, at)) {
        open++;
    }
    assert_int_equal(open, mirror->open);
    for (int i = 0; i < ELECTIONS; i++) {
        const char name[] = {(char)('a' + i), '\0'};
        const struct session_election *election = sessions_election(sessions, name);
        bool has_eligible = false;
        bool is_in_line = false;
        int count = 0;

        for (const struct session_contender *at = election ? election->first : NULL; at;
             at = at->next) {
            has_eligible |= at->is_eligible;
            is_in_line |= at == election->holder;
            count++;
        }
        assert_int_equal(count, mirror->contenders[i]);
        if (election) {
            assert_int_equal(election->count, count);
            assert_true(count > 0);
            assert_true(is_in_line || (!election->holder && !has_eligible));
        }
        assert_int_equal(election && election->holder ? election->holder->session->id : 0,
                         mirror->holder[i]);
    }
}

static struct session_order random_order(uint64_t index)
{
    struct session_order order = {.type = (enum session_order_type)(1 + draw(9)),
                                  .node = 1 + draw(2),
                                  .session = 1 + draw(index),
                                  .to = 1 + draw(index),
                                  .epoch = 1 + draw(index),
                                  .is_eligible = draw(4) != 0,
                                  .priority = (int32_t)draw(3),
                                  .lifetime = SPAN_S(30),
                                  .end = SESSION_END_LEFT,
                                  .metadata = draw(2) ? "{}" : NULL,
                                  .metadata_bytes = 2,
                                  .secret = {(uint8_t)(draw(4) == 0)},
                                  .name = {(char)('a' + draw(ELECTIONS)), '\0'}};

    if (order.type == SESSION_END && draw(4) != 0) {
        order.type = SESSION_ENTER;
    }
    return order;
}

/* Of the sessions there are, and of the holders, oftener than chance would choose them. */
static void aim(struct session_order *order, const struct sessions *sessions)
{
    const struct session_election *election = sessions_election(sessions, order->name);

    if (draw(3) != 0) {
        uint64_t skip = draw(5);
        for (const struct session *at = sessions_next(sessions, NULL); at;
             at = sessions_next(sessions, at)) {
            order->session = at->id;
            if (skip-- == 0) {
                break;
            }
        }
    }
    if ((order->type == SESSION_RESIGN || order->type == SESSION_WITHDRAW) && election &&
        election->holder && draw(4) != 0) {
        order->session = election->holder->session->id;
        order->epoch = election->epoch;
    }
    if (election && election->first && draw(2)) {
        order->to = election->first->prev->session->id;
    }
}

/* What the order's session was before it; {0}: there was none. */
struct standing {
    uint64_t node, attached;
    uint8_t secret;
};

static struct standing standing_of(const struct sessions *sessions, uint64_t id)
{
    const struct session *session = sessions_find(sessions, id);

    return session ? (struct standing){session->node, session->attached, session->secret[0]}
                   : (struct standing){0};
}

/* Only who knows the secret; and then it is at that node. */
static void assert_resumed_rightly(const struct session_order *order, const struct standing *before,
                                   const struct standing *after, int code)
{
    bool is_resumed =
        before->attached != 0 && after->attached != 0 && before->attached != after->attached;

    assert_int_equal(is_resumed, order->type == SESSION_RESUME && code == BATON_OK);
    assert_true(!is_resumed || (order->secret[0] == before->secret && order->node == after->node));
    assert_true(is_resumed || after->attached == 0 || before->node == after->node);
}

static void assert_took_nothing_of_others(const struct session_order *order,
                                          const struct standing *session,
                                          const struct mirror *before, const struct mirror *after)
{
    for (int i = 0; i < ELECTIONS; i++) {
        if (before->holder[i] != 0 &&
            (before->holder[i] != after->holder[i] || before->epoch[i] != after->epoch[i])) {
            assert_int_equal(order->session, before->holder[i]);
            assert_true((order->type == SESSION_END && order->epoch == session->attached) ||
                        ((order->type == SESSION_WITHDRAW || order->type == SESSION_RESIGN) &&
                         order->epoch == before->epoch[i] && order->node == session->node));
        }
    }
}

static void bytes_of(const struct sessions *sessions, struct buffer *ret)
{
    buffer_init(ret, 1 << 20);
    sessions_snapshot(sessions, ret);
    assert_false(ret->failed);
}

static void install_copy(struct sessions *from, struct sessions *into)
{
    struct sessions *copy = NULL;
    struct buffer bytes, again;

    bytes_of(from, &bytes);
    assert_int_equal(sessions_restore(&copy, bytes.data, bytes.bytes), BATON_OK);
    bytes_of(copy, &again);
    assert_int_equal(again.bytes, bytes.bytes);
    assert_memory_equal(again.data, bytes.data, bytes.bytes);
    sessions_install(into, copy);
    buffer_fini(&bytes);
    buffer_fini(&again);
}

static void play(uint64_t seed)
{
    struct mirror mirror = {0}, mirror_behind = {0};
    struct sessions *sessions = sessions_new(mirror_note, &mirror);
    struct sessions *behind = sessions_new(mirror_note, &mirror_behind);

    state_of_random = seed * 0x9e3779b97f4a7c15u + 1;
    for (uint64_t index = 1; index <= STEPS; index++) {
        struct session_order order = random_order(index);
        struct mirror before = mirror;
        struct buffer bytes;
        struct session_order back;
        struct standing standing, standing_after;
        int code;

        aim(&order, sessions);
        if (order.type == SESSION_OPEN || order.type == SESSION_PASS) {
            order.session = 0;
        }
        if (order.type == SESSION_END && draw(4) != 0) {
            const struct session *ended = sessions_find(sessions, order.session);
            order.epoch = ended ? ended->attached : 1;
        }
        if (sessions_find(sessions, order.session) && draw(4) != 0) {
            order.node = sessions_find(sessions, order.session)->node;
        }
        if (order.type == SESSION_END || order.type == SESSION_DESCRIBE ||
            order.type == SESSION_RESUME) {
            order.name[0] = '\0';
        }
        buffer_init(&bytes, 1024);
        session_order_encode(&bytes, &order);
        assert_int_equal(session_order_decode(&back, bytes.data, bytes.bytes), BATON_OK);
        standing = standing_of(sessions, order.session);
        code = sessions_carry_out(sessions, &back, index);
        buffer_fini(&bytes);
        standing_after = standing_of(sessions, order.session);
        if (order.session != 0) {
            assert_resumed_rightly(&order, &standing, &standing_after, code);
        }
        assert_sound(sessions, &mirror);
        assert_took_nothing_of_others(&order, &standing, &before, &mirror);
        if (draw(20) == 0) {
            install_copy(sessions, behind);
            assert_sound(behind, &mirror_behind);
        }
    }
    install_copy(sessions, behind);
    assert_memory_equal(&mirror.holder, &mirror_behind.holder, sizeof(mirror.holder));
    sessions_free(sessions);
    sessions_free(behind);
}

static void whatever_the_log_orders_an_election_has_one_holder(void **state)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        play(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_the_log_orders_an_election_has_one_holder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
