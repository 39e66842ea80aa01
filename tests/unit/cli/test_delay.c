/* A network that delays and loses packets. */
#include "cli/delay.h"
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

enum { PACKETS = 10000 };

static struct delay delay; /* large */

static void begin(int64_t rtt_us, int64_t jitter_us, uint32_t loss_ppm)
{
    const struct delay_settings settings = {
        .rtt = SPAN_US(rtt_us), .jitter = SPAN_US(jitter_us), .loss_ppm = loss_ppm, .seed = 7};
    delay_init(&delay, &settings);
}

static instant at_us(int64_t us)
{
    return instant_add((instant){0}, SPAN_US(us));
}

static void packets_come_after_half_a_round_trip_within_the_jitter_and_in_order(void **state)
{
    int expected = 0;

    begin(500, 200, 0);
    for (int i = 0; i < PACKETS; i++) {
        struct delayed *packet;
        delay_put(&delay, 0, 1, &i, sizeof(i), at_us(10L * i));
        while ((packet = delay_take(&delay, at_us(10L * i)))) {
            int number;
            memcpy(&number, packet->data, sizeof(number));
            assert_int_equal(number, expected++);
            assert_int_equal(packet->to, 1);
            assert_in_range(packet->due.ns - 10000L * number, 150000, 350000);
            free(packet);
        }
    }
    assert_in_range(expected, PACKETS - 40, PACKETS);
    assert_true(delay.count > 0 && delay_next(&delay).ns < INSTANT_NEVER.ns);
    delay_fini(&delay);
    assert_int_equal(delay_next(&delay).ns, INSTANT_NEVER.ns);
}

static void directions_do_not_wait_for_each_other(void **state)
{
    instant last = {0};

    begin(500, 500, 0);
    for (unsigned i = 0; i < 100; i++) {
        delay_put(&delay, i % 4, 4 + i % 3, "x", 1, at_us(0));
    }
    for (int i = 0; i < 100; i++) {
        struct delayed *packet = delay_take(&delay, at_us(500));
        assert_non_null(packet);
        assert_true(packet->due.ns >= last.ns);
        last = packet->due;
        free(packet);
    }
    assert_null(delay_take(&delay, at_us(500)));
    delay_fini(&delay);
}

static void the_share_that_is_lost_is_the_one_that_was_wanted(void **state)
{
    begin(500, 0, 10000);
    for (int i = 0; i < PACKETS; i++) {
        delay_put(&delay, 0, 1, "x", 1, at_us(i));
    }
    assert_int_equal(delay.taken, PACKETS);
    assert_in_range(delay.lost, 50, 200); /* 1 % are 100 */
    assert_int_equal(delay.lost + delay.count, PACKETS);
    delay_fini(&delay);
}

static void what_there_is_no_room_for_is_lost(void **state)
{
    begin(500, 0, 0);
    for (int i = 0; i < DELAY_PACKETS_MAX + 5; i++) {
        delay_put(&delay, 0, 1, "x", 1, at_us(i));
    }
    assert_int_equal(delay.lost, 5);
    delay_fini(&delay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_come_after_half_a_round_trip_within_the_jitter_and_in_order),
        cmocka_unit_test(directions_do_not_wait_for_each_other),
        cmocka_unit_test(the_share_that_is_lost_is_the_one_that_was_wanted),
        cmocka_unit_test(what_there_is_no_room_for_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
