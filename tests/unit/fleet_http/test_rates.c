/* How often an address may ask. */
#include "fleet/http/rates.h"

#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>

enum { PER_S = 10, SECRET = 4711 };

static const instant begin = {1000000000};

static unsigned take_all(struct rates *rates, const char *address, instant now)
{
    unsigned taken = 0;

    while (rates_take(rates, address, now)) {
        taken++;
    }
    return taken;
}

static void an_address_may_ask_twice_the_rate_at_once_and_then_the_rate(void **state)
{
    struct rates *rates = *state;

    assert_int_equal(take_all(rates, "10.0.0.1:4000", begin), 2 * PER_S);
    assert_false(rates_take(rates, "10.0.0.1:4000", instant_add(begin, SPAN_MS(99))));
    assert_true(rates_take(rates, "10.0.0.1:4000", instant_add(begin, SPAN_MS(101))));
    assert_int_equal(take_all(rates, "10.0.0.1:4000", instant_add(begin, SPAN_MS(1100))), PER_S);
    assert_int_equal(take_all(rates, "10.0.0.1:4000", instant_add(begin, SPAN_S(3600))), 2 * PER_S);
}

/* Many requests within a millisecond each add less than one. */
static void fractions_are_not_lost(void **state)
{
    struct rates *rates = *state;
    unsigned taken = take_all(rates, "10.0.0.1:1", begin);

    for (int us = 0; us < 1000000; us += 100) {
        taken += rates_take(rates, "10.0.0.1:1", instant_add(begin, SPAN_US(us)));
    }
    assert_in_range(taken, 3 * PER_S - 1, 3 * PER_S);
}

static void connections_of_one_address_share_its_rate(void **state)
{
    struct rates *rates = *state;

    (void)take_all(rates, "10.0.0.1:4000", begin);
    assert_false(rates_take(rates, "10.0.0.1:4001", begin));
    (void)take_all(rates, "[2001:db8:1:2:3::5]:80", begin);
    assert_false(rates_take(rates, "[2001:db8:1:2:ffff::1]:80", begin));
}

/* Of the addresses of three networks nearly all have a place of their own. */
static void other_addresses_have_their_own(void **state)
{
    struct rates *rates = *state;
    unsigned allowed = 0;
    char address[64];

    (void)take_all(rates, "10.0.0.1:1", begin);
    (void)take_all(rates, "[::ffff:10.0.0.1]:1", begin);
    (void)take_all(rates, "[2001:db8:1:2:3::5]:80", begin);
    for (int i = 2; i < 102; i++) {
        (void)snprintf(address, sizeof(address), "10.0.0.%d:1", i);
        allowed += rates_take(rates, address, begin);
        (void)snprintf(address, sizeof(address), "[::ffff:10.0.0.%d]:1", i);
        allowed += rates_take(rates, address, begin);
        (void)snprintf(address, sizeof(address), "[2001:db8:1:%x:3::5]:1", i + 10);
        allowed += rates_take(rates, address, begin);
    }
    assert_in_range(allowed, 290, 300);
}

static void without_a_rate_all_may_ask(void **state)
{
    struct rates *rates = *state;

    rates_init(rates, 0, SECRET);
    for (int i = 0; i < 100000; i++) {
        assert_true(rates_take(rates, "10.0.0.1:1", begin));
    }
}

static int setup(void **state)
{
    struct rates *rates = malloc(sizeof(*rates));

    rates_init(rates, PER_S, SECRET);
    *state = rates;
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(an_address_may_ask_twice_the_rate_at_once_and_then_the_rate),
        TEST(fractions_are_not_lost),
        TEST(connections_of_one_address_share_its_rate),
        TEST(other_addresses_have_their_own),
        TEST(without_a_rate_all_may_ask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
