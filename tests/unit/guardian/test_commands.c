/* Commands for servers: texts, filled in and bounded. */
#include "cmocka_all.h"
#include "guardian/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct commands_text text;
static char bytes[COMMANDS_RENDERED_MAX];

static void places_are_filled_in(void **state)
{
    static const char *const arguments[] = {"EVAL", "\1:master", "\2", "a b", ""};
    static const char expected[] = "*5\r\n$4\r\nEVAL\r\n$10\r\nrow:master\r\n$2\r\n42\r\n"
                                   "$3\r\na b\r\n$0\r\n\r\n";
    size_t length;

    assert_true(commands_set_text(&text, arguments, 5));
    length = commands_render(bytes, sizeof(bytes), &text, "row", 42);
    assert_int_equal(length, sizeof(expected) - 1);
    assert_memory_equal(bytes, expected, length);
}

static void what_has_no_room_is_not_said(void **state)
{
    static char longest[COMMANDS_TEXT_MAX + 1];
    const char *arguments[] = {"\1\1\1\1", longest};
    char tiny[20];

    memset(longest, 'x', sizeof(longest) - 1);
    assert_false(commands_set_text(&text, arguments, 2));
    assert_int_equal(commands_render(bytes, sizeof(bytes), &text, "row", 1),
                     0); /* nothing is set */
    assert_true(commands_set_text(&text, arguments, 1));
    assert_int_equal(commands_render(tiny, sizeof(tiny), &text, "row", 1), 0);
    assert_int_not_equal(commands_render(bytes, sizeof(bytes), &text, "row", 1), 0);
}

/* The process may have died of memory that was written over. */
static void no_damage_is_read_beyond_its_bounds(void **state)
{
    static const char *const arguments[] = {"SET", "\1", "\2"};
    struct commands_text *damaged = malloc(sizeof(*damaged)); /* its bounds are watched */
    char *name = malloc(COMMANDS_NAME_MAX);

    assert_non_null(damaged);
    assert_non_null(name);
    memset(name, 'n', COMMANDS_NAME_MAX);
    assert_true(commands_set_text(damaged, arguments, 3));
    assert_int_equal(commands_render(bytes, sizeof(bytes), damaged, name, 1), 0); /* has no end */
    name[3] = '\0';
    srandom(1);
    for (int i = 0; i < 20000; i++) {
        assert_true(commands_set_text(damaged, arguments, 3));
        for (int j = 0; j < 4; j++) {
            ((unsigned char *)damaged)[random() % 24] = (unsigned char)random();
        }
        assert_true(commands_render(bytes, sizeof(bytes), damaged, name, 1) <= sizeof(bytes));
    }
    memset(damaged, 0xff, sizeof(*damaged));
    assert_int_equal(commands_render(bytes, sizeof(bytes), damaged, name, 1), 0);
    free(name);
    free(damaged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_filled_in),
        cmocka_unit_test(what_has_no_room_is_not_said),
        cmocka_unit_test(no_damage_is_read_beyond_its_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
