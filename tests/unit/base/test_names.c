#include "base/names.h"

#include "base/error.h"
#include "cmocka_all.h"

#include <stdbool.h>
#include <stdio.h>

enum { MANY = 3000 };

struct item {
    int number;
    char name[16];
};

static struct item items[MANY];

static void begin(struct names *names)
{
    names_init(names, offsetof(struct item, name));
    for (int i = 0; i < MANY; i++) {
        items[i].number = i;
        (void)snprintf(items[i].name, sizeof(items[i].name), "item-%d", i);
    }
}

static void nothing_is_found_where_nothing_is(void **state)
{
    struct names names;

    begin(&names);
    assert_null(names_find(&names, "item-1"));
    assert_int_equal(names_add(&names, &items[1]), BATON_OK);
    assert_null(names_find(&names, "item-10"));
    assert_null(names_find(&names, ""));
    names_remove(&names, &items[1]);
    assert_null(names_find(&names, "item-1"));
    names_fini(&names);
}

static void each_is_found_by_its_name_however_many_there_are(void **state)
{
    struct names names;

    begin(&names);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(names_add(&names, &items[i]), BATON_OK);
        assert_ptr_equal(names_find(&names, items[i / 2].name), &items[i / 2]);
    }
    for (int i = 0; i < MANY; i++) {
        assert_ptr_equal(names_find(&names, items[i].name), &items[i]);
    }
    names_fini(&names);
}

/* By turns, in an order that meets every chain of neighbours in its middle. */
static void the_others_are_found_when_one_is_removed(void **state)
{
    struct names names;
    static bool is_there[MANY];
    uint32_t random = 1;
    size_t count = 0;

    begin(&names);
    for (int turn = 0; turn < 40 * MANY; turn++) {
        int i;
        random = random * 1664525u + 1013904223u;
        i = (int)(random >> 8) % (turn % 4000 < 2000 ? MANY : MANY / 50);
        if (is_there[i]) {
            names_remove(&names, &items[i]);
        } else {
            assert_int_equal(names_add(&names, &items[i]), BATON_OK);
        }
        is_there[i] = !is_there[i];
        count += is_there[i] ? 1 : (size_t)-1;
        assert_int_equal(names.count, count);
        for (int other = turn % 500 == 0 ? 0 : MANY; other < MANY; other++) {
            assert_ptr_equal(names_find(&names, items[other].name),
                             is_there[other] ? &items[other] : NULL);
        }
    }
    names_fini(&names);
}

static void the_table_shrinks_with_what_is_in_it(void **state)
{
    struct names names;

    begin(&names);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(names_add(&names, &items[i]), BATON_OK);
    }
    assert_true(names.capacity >= MANY);
    for (int i = MANY - 1; i > 0; i--) {
        names_remove(&names, &items[i]);
    }
    assert_true(names.capacity <= 16);
    assert_ptr_equal(names_find(&names, "item-0"), &items[0]);
    names_fini(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_found_where_nothing_is),
        cmocka_unit_test(each_is_found_by_its_name_however_many_there_are),
        cmocka_unit_test(the_others_are_found_when_one_is_removed),
        cmocka_unit_test(the_table_shrinks_with_what_is_in_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
