/* Lists that are written item by item. */
#include "fleet/http/items.h"

#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

enum { MANY = 1 << 16 };

static void a_list_is_json(void **state)
{
    struct items items;

    items_init(&items, MANY);
    items_add(&items, json_pack("{s:s}", "id", "a\"b"));
    items_add(&items, json_integer(2));
    items_end(&items);
    items_number(&items, "count", 18446744073709551615u);
    items_text(&items, "next", "c\n");
    items_text(&items, "not", NULL);
    items_close(&items);
    assert_string_equal(buffer_text(&items.text),
                        "{\"items\":[{\"id\":\"a\\\"b\"},2],\"count\":18446744073709551615,"
                        "\"next\":\"c\\n\"}");
    items_fini(&items);
}

static void a_list_may_be_empty(void **state)
{
    struct items items;

    items_init(&items, MANY);
    items_end(&items);
    items_close(&items);
    assert_string_equal(buffer_text(&items.text), "{\"items\":[]}");
    items_fini(&items);
}

static void an_item_may_be_long(void **state)
{
    char text[5000];
    struct items items;
    json_t *json;

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    items_init(&items, MANY);
    items_add(&items, json_string(text));
    items_end(&items);
    items_close(&items);
    json = json_loads(buffer_text(&items.text), 0, NULL);
    assert_string_equal(json_string_value(json_array_get(json_object_get(json, "items"), 0)), text);
    json_decref(json);
    items_fini(&items);
}

/* Half a list would look like a whole one to a client that does not read JSON to its end. */
static void a_list_without_room_or_memory_fails(void **state)
{
    struct items items;

    items_init(&items, 2048);
    for (int i = 0; i < 1000; i++) {
        items_add(&items, json_string("item"));
    }
    items_close(&items);
    assert_true(items.text.failed);
    items_fini(&items);
    items_init(&items, MANY);
    items_add(&items, NULL);
    items_close(&items);
    assert_true(items.text.failed);
    items_fini(&items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_json),
        cmocka_unit_test(a_list_may_be_empty),
        cmocka_unit_test(an_item_may_be_long),
        cmocka_unit_test(a_list_without_room_or_memory_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
