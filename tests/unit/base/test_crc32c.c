/* Both ways of computing the sum: by the table, which this processor may never need, and by the
 * processor. */
#include "cmocka_all.h"

/* For the static functions. */
#include "base/crc32c.c" /* NOLINT(bugprone-suspicious-include) */

static const struct {
    const char *text;
    uint32_t sum;
} known[] = {
    {"", 0x00000000}, {"a", 0xC1D04330}, {"123456789", 0xE3069283}, /* RFC 3720 has the last */
};

static void known_sums_come_out(void **state)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const uint8_t *text = (const uint8_t *)known[i].text;
        size_t bytes = strlen(known[i].text);

        assert_int_equal(crc32c(0, text, bytes), known[i].sum);
        assert_int_equal((uint32_t)~by_table(UINT32_MAX, text, bytes), known[i].sum);
    }
}

static void both_ways_agree_for_every_length_and_in_parts(void **state)
{
    uint8_t data[300];

    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t)(i * i * 31 + i * 7 + 3);
    }
    for (size_t bytes = 0; bytes <= 64; bytes++) {
        for (size_t from = 0; from < 9; from++) {
            uint32_t sum = ~by_table(UINT32_MAX, data + from, bytes);
            assert_int_equal(crc32c(0, data + from, bytes), sum);
            assert_int_equal(crc32c(crc32c(0, data + from, bytes / 3), data + from + bytes / 3,
                                    bytes - bytes / 3),
                             sum);
        }
    }
    assert_int_equal(crc32c(0, data, sizeof(data)),
                     (uint32_t)~by_table(UINT32_MAX, data, sizeof(data)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_sums_come_out),
        cmocka_unit_test(both_ways_agree_for_every_length_and_in_parts),
    };
    return cmocka_run_group_tests_name("unit_base_crc32c", tests, NULL, NULL);
}
