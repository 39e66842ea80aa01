/* Lists that are written item by item. */
#include "fleet/http/listing.h"

#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

enum { MANY = 1 << 16 };

static void a_list_is_json(void **state)
{
    struct listing listing;

    (void)state;
    listing_init(&listing, MANY);
    listing_add(&listing, json_pack("{s:s}", "id", "a\"b"));
    listing_add(&listing, json_integer(2));
    listing_end(&listing);
    listing_number(&listing, "count", 18446744073709551615u);
    listing_text(&listing, "next", "c\n");
    listing_text(&listing, "not", NULL);
    listing_close(&listing);
    assert_string_equal(buffer_text(&listing.text),
                        "{\"items\":[{\"id\":\"a\\\"b\"},2],\"count\":18446744073709551615,"
                        "\"next\":\"c\\n\"}");
    listing_fini(&listing);
}

static void a_list_may_be_empty(void **state)
{
    struct listing listing;

    (void)state;
    listing_init(&listing, MANY);
    listing_end(&listing);
    listing_close(&listing);
    assert_string_equal(buffer_text(&listing.text), "{\"items\":[]}");
    listing_fini(&listing);
}

static void an_item_may_be_long(void **state)
{
    char text[5000];
    struct listing listing;
    json_t *json;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    listing_init(&listing, MANY);
    listing_add(&listing, json_string(text));
    listing_end(&listing);
    listing_close(&listing);
    json = json_loads(buffer_text(&listing.text), 0, NULL);
    assert_string_equal(json_string_value(json_array_get(json_object_get(json, "items"), 0)), text);
    json_decref(json);
    listing_fini(&listing);
}

/* Half a list would look like a whole one to a client that does not read JSON to its end. */
static void a_list_without_room_or_memory_fails(void **state)
{
    struct listing listing;

    (void)state;
    listing_init(&listing, 2048);
    for (int i = 0; i < 1000; i++) {
        listing_add(&listing, json_string("item"));
    }
    listing_close(&listing);
    assert_true(listing.text.failed);
    listing_fini(&listing);
    listing_init(&listing, MANY);
    listing_add(&listing, NULL);
    listing_close(&listing);
    assert_true(listing.text.failed);
    listing_fini(&listing);
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
