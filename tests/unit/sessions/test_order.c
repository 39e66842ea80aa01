/* Orders as bytes: what goes in comes out, and bytes that lie are refused. */
#include "cmocka_all.h"
#include "sessions/order.h"

#include <stdio.h>
#include <string.h>

static const char metadata[] = "{\"zone\":\"b\"}";

static struct session_order order_of(enum session_order_type type)
{
    struct session_order order = {.type = type, .node = 7, .request = 9};

    if (type != SESSION_OPEN && type != SESSION_PASS) {
        order.session = 4;
    }
    if (type != SESSION_END && type != SESSION_DESCRIBE && type != SESSION_RESUME) {
        (void)snprintf(order.name, sizeof(order.name), "a/name");
    }
    if (type == SESSION_OPEN || type == SESSION_DESCRIBE) {
        order.metadata = metadata;
        order.metadata_bytes = sizeof(metadata) - 1;
    }
    if (type == SESSION_OPEN) {
        order.lifetime = SPAN_S(30);
        order.incarnation = 6;
        memset(order.secret, 0xa5, sizeof(order.secret));
    }
    if (type == SESSION_RESUME) {
        memset(order.secret, 0x5a, sizeof(order.secret));
    }
    if (type == SESSION_END) {
        order.end = SESSION_END_CERTIFIED;
        order.epoch = 4;
    }
    if (type == SESSION_ENTER) {
        order.priority = -3;
        order.is_eligible = true;
    }
    if (type == SESSION_ELIGIBLE) {
        order.is_eligible = true;
    }
    if (type == SESSION_RESIGN || type == SESSION_WITHDRAW) {
        order.epoch = 12;
    }
    if (type == SESSION_RESIGN || type == SESSION_PASS) {
        order.to = 13;
    }
    return order;
}

static void an_order_comes_back_as_it_was(void **state)
{
    for (int type = SESSION_OPEN; type <= SESSION_RESUME; type++) {
        const struct session_order order = order_of(type);
        struct session_order back;
        struct buffer bytes;

        buffer_init(&bytes, 1024);
        session_order_encode(&bytes, &order);
        assert_int_equal(session_order_decode(&back, bytes.data, bytes.bytes), BATON_OK);
        assert_int_equal(back.type, type);
        assert_int_equal(back.node, 7);
        assert_int_equal(back.request, 9);
        assert_int_equal(back.session, order.session);
        assert_int_equal(back.epoch, order.epoch);
        assert_int_equal(back.to, order.to);
        assert_int_equal(back.priority, order.priority);
        assert_int_equal(back.is_eligible, order.is_eligible);
        assert_int_equal(back.end, order.end);
        assert_int_equal(back.lifetime.ns, order.lifetime.ns);
        assert_int_equal(back.incarnation, order.incarnation);
        assert_memory_equal(back.secret, order.secret, sizeof(order.secret));
        assert_string_equal(back.name, order.name);
        assert_int_equal(back.metadata_bytes, order.metadata_bytes);
        assert_int_equal(!back.metadata, !order.metadata);
        if (order.metadata) {
            assert_memory_equal(back.metadata, order.metadata, order.metadata_bytes);
        }
        buffer_fini(&bytes);
    }
}

static void an_order_cut_short_is_refused(void **state)
{
    for (int type = SESSION_OPEN; type <= SESSION_RESUME; type++) {
        struct session_order order = order_of(type);
        struct session_order back;
        struct buffer bytes;

        order.metadata = NULL; /* which is as long as the bytes are */
        buffer_init(&bytes, 1024);
        session_order_encode(&bytes, &order);
        for (size_t i = 0; i < bytes.bytes; i++) {
            assert_int_equal(session_order_decode(&back, bytes.data, i), BATON_ECORRUPT);
        }
        buffer_put_u8(&bytes, 0);
        assert_int_equal(session_order_decode(&back, bytes.data, bytes.bytes), BATON_ECORRUPT);
        buffer_fini(&bytes);
    }
}

static int outcome_of(const struct session_order *order)
{
    struct session_order back;
    struct buffer bytes;
    int code;

    buffer_init(&bytes, 16384);
    session_order_encode(&bytes, order);
    code = session_order_decode(&back, bytes.data, bytes.bytes);
    buffer_fini(&bytes);
    return code;
}

static void an_order_without_sense_is_refused(void **state)
{
    static char long_metadata[SESSION_METADATA_MAX + 1];
    struct session_order order;

    order = order_of(SESSION_OPEN);
    order.lifetime = SPAN_NS(0);
    assert_int_equal(outcome_of(&order), BATON_ECORRUPT);
    order.lifetime = SPAN_NS(-1);
    assert_int_equal(outcome_of(&order), BATON_ECORRUPT);
    order.lifetime = SPAN_S(SESSION_LIFETIME_MAX_S + 1);
    assert_int_equal(outcome_of(&order), BATON_ECORRUPT);
    order = order_of(SESSION_OPEN);
    order.metadata = long_metadata;
    order.metadata_bytes = sizeof(long_metadata);
    assert_int_equal(outcome_of(&order), BATON_ECORRUPT);
    order.metadata_bytes = 8; /* zeros */
    assert_int_equal(outcome_of(&order), BATON_ECORRUPT);
    order = order_of(SESSION_OPEN);
    order.session = 1;
    assert_int_equal(outcome_of(&order), BATON_ECORRUPT);
    order = order_of(SESSION_ENTER);
    order.session = 0;
    assert_int_equal(outcome_of(&order), BATON_ECORRUPT);
    order = order_of(SESSION_ENTER);
    order.name[0] = '\0';
    assert_int_equal(outcome_of(&order), BATON_ECORRUPT);
    order = order_of(SESSION_END);
    order.end = 4;
    assert_int_equal(outcome_of(&order), BATON_ECORRUPT);
    order = order_of(SESSION_PASS);
    order.to = 0;
    assert_int_equal(outcome_of(&order), BATON_ECORRUPT);
}

static void a_later_version_is_told_from_damage(void **state)
{
    const struct session_order order = order_of(SESSION_ENTER);
    struct session_order back;
    struct buffer bytes;

    buffer_init(&bytes, 1024);
    session_order_encode(&bytes, &order);
    bytes.data[1] = SESSION_ORDER_VERSION + 1;
    assert_int_equal(session_order_decode(&back, bytes.data, bytes.bytes), BATON_ENOTSUP);
    bytes.data[1] = 0;
    assert_int_equal(session_order_decode(&back, bytes.data, bytes.bytes), BATON_ECORRUPT);
    bytes.data[1] = SESSION_ORDER_VERSION;
    bytes.data[0] = 1;
    assert_int_equal(session_order_decode(&back, bytes.data, bytes.bytes), BATON_ECORRUPT);
    buffer_fini(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_comes_back_as_it_was),
        cmocka_unit_test(an_order_cut_short_is_refused),
        cmocka_unit_test(an_order_without_sense_is_refused),
        cmocka_unit_test(a_later_version_is_told_from_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
