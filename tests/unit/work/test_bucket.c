/* Buckets: there and back, damage, what a leader keeps. */
#include "ledger_tools.h"

static void a_ledger_comes_back_from_its_buckets(void **state)
{
    struct ledger *ledger = ledger_new(), *copy = ledger_new();
    (void)state;

    for (int i = 0; i < 500; i++) {
        char id[32];
        (void)snprintf(id, sizeof(id), "item.%d", i);
        if (i % 3 > 0) {
            place(ledger, submit_id(ledger, id), i % 2 ? "w" : "v", 7);
        } else {
            (void)submit_id(ledger, id);
        }
        if (i % 3 == 2) {
            ledger_finish(ledger, ledger_find(ledger, id), WORK_COMPLETED, -i, -NOW_MS);
        }
    }
    assert_false(ledger_equal(ledger, copy));
    copy_buckets(ledger, copy);
    assert_true(ledger_equal(ledger, copy));
    assert_true(ledger_equal(copy, ledger));
    assert_int_equal(ledger_changed_bucket(copy, 0), -1);
    assert_int_equal(ledger_changed_bucket(ledger, 0), -1);
    assert_int_equal(ledger_count(copy, WORK_PROCESSING), ledger_count(ledger, WORK_PROCESSING));
    ledger_free(ledger);
    ledger_free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ledger_comes_back_from_its_buckets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
