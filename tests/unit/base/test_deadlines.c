#include "base/deadlines.h"

#include "base/error.h"
#include "cmocka_all.h"

enum { MANY = 2000 };

struct thing {
    int number;
    instant due;
    struct deadline deadline;
};

static struct thing things[MANY];

static void begin(void)
{
    for (int i = 0; i < MANY; i++) {
        things[i] = (struct thing){.number = i};
    }
}

static instant at(int64_t s)
{
    return instant_add((instant){0}, SPAN_S(s));
}

static struct thing *first(const struct deadlines *deadlines)
{
    struct deadline *deadline = deadlines_first(deadlines);

    return deadline ? DEADLINE_OF(struct thing, deadline, deadline) : NULL;
}

static void an_empty_heap_is_never_due(void **state)
{
    struct deadlines deadlines = {.heap = NULL};

    begin();
    assert_int_equal(deadlines_next(&deadlines).ns, INSTANT_NEVER.ns);
    assert_null(deadlines_first(&deadlines));
    deadlines_remove(&deadlines, &things[0].deadline);
    assert_int_equal(deadlines_add(&deadlines, &things[0].deadline, at(7)), BATON_OK);
    assert_int_equal(deadlines_next(&deadlines).ns, at(7).ns);
    deadlines_remove(&deadlines, &things[0].deadline);
    assert_int_equal(deadlines_next(&deadlines).ns, INSTANT_NEVER.ns);
    deadlines_fini(&deadlines);
}

/* By turns, in no order. */
static void the_first_is_due_first_whatever_is_added_changed_and_removed(void **state)
{
    struct deadlines deadlines = {.heap = NULL};
    uint32_t random = 1;

    begin();
    for (int turn = 0; turn < 20 * MANY; turn++) {
        instant least = INSTANT_NEVER;
        random = random * 1664525u + 1013904223u;
        struct thing *thing = &things[(random >> 8) % MANY];
        thing->due = at((random >> 4) % 5000);
        if (thing->deadline.place == 0) {
            assert_int_equal(deadlines_add(&deadlines, &thing->deadline, thing->due), BATON_OK);
        } else if (turn % 3 == 0) {
            deadlines_remove(&deadlines, &thing->deadline);
        } else {
            deadlines_change(&deadlines, &thing->deadline, thing->due);
        }
        for (int i = turn % 100 == 0 ? 0 : MANY; i < MANY; i++) {
            least = instant_min(least, things[i].deadline.place ? things[i].due : INSTANT_NEVER);
        }
        if (turn % 100 == 0 && deadlines.count > 0) {
            assert_int_equal(deadlines_next(&deadlines).ns, least.ns);
            assert_int_equal(first(&deadlines)->due.ns, least.ns);
        }
    }
    deadlines_fini(&deadlines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_heap_is_never_due),
        cmocka_unit_test(the_first_is_due_first_whatever_is_added_changed_and_removed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
