/* How a request finds its route. */
#include "fleet/http/routes.h"

#include "cmocka_all.h"

#include <string.h>

static const struct route table[] = {
    {.method = "GET", .pattern = "/"},
    {.method = "GET", .pattern = "/api/cameras"},
    {.method = "GET", .pattern = "/api/cameras/{id}"},
    {.method = "PUT", .pattern = "/api/cameras/{id}"},
    {.method = "DELETE", .pattern = "/api/cameras/{id}"},
    {.method = "GET", .pattern = "/api/cameras/{id}/image"},
    {.method = "POST", .pattern = "/api/apply"},
    {.method = NULL},
};

/* The pattern, or the methods that there are. */
static const char *find(const char *method, const char *target, char id[static ROUTE_ID_MAX])
{
    static char methods[ROUTE_METHODS_MAX];
    const struct route *route = route_find(table, method, target, id, methods);

    return route != NULL ? route->pattern : methods;
}

static void a_path_finds_its_route_and_its_id(void **state)
{
    char id[ROUTE_ID_MAX];

    assert_string_equal(find("GET", "/", id), "/");
    assert_string_equal(find("GET", "/?x=1", id), "/");
    assert_string_equal(find("GET", "/api/cameras?limit=3", id), "/api/cameras");
    assert_string_equal(id, "");
    assert_string_equal(find("GET", "/api/cameras/cam-1", id), "/api/cameras/{id}");
    assert_string_equal(id, "cam-1");
    assert_string_equal(find("GET", "/api/cameras/d;c/image?w=3", id), "/api/cameras/{id}/image");
    assert_string_equal(id, "d;c");
    assert_string_equal(find("GET", "/%61pi/cameras/%3b", id), "/api/cameras/{id}");
    assert_string_equal(id, ";");
}

static void a_slash_in_an_id_is_one_that_is_encoded(void **state)
{
    char id[ROUTE_ID_MAX];

    assert_string_equal(find("GET", "/api/cameras/a%2Fimage", id), "/api/cameras/{id}");
    assert_string_equal(id, "a/image");
    assert_string_equal(find("GET", "/api/cameras/a%2Fb/image", id), "/api/cameras/{id}/image");
    assert_string_equal(id, "a/b");
    assert_string_equal(find("GET", "/api%2Fcameras", id), "");
}

static void a_head_is_a_get(void **state)
{
    char id[ROUTE_ID_MAX];

    assert_string_equal(find("HEAD", "/api/cameras", id), "/api/cameras");
    assert_string_equal(find("HEAD", "/api/apply", id), "POST");
}

static void another_method_is_told_those_that_there_are(void **state)
{
    char id[ROUTE_ID_MAX];

    assert_string_equal(find("PATCH", "/api/cameras/x", id), "GET, HEAD, PUT, DELETE");
    assert_string_equal(find("get", "/api/apply", id), "POST");
}

static void what_is_no_path_of_the_table_is_not_found(void **state)
{
    static const char *const targets[] = {"/api",
                                          "/api/",
                                          "/api/cameras/",
                                          "/api/cameras/a/b",
                                          "/api/camera",
                                          "/api/camerasx",
                                          "/api/cameras//",
                                          "/api/cameras/a/image/",
                                          "//",
                                          "/api/cameras/a%00b"};
    char id[ROUTE_ID_MAX];

    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        assert_string_equal(find("GET", targets[i], id), "");
    }
}

static void an_id_that_is_too_long_is_not_found(void **state)
{
    char target[ROUTE_ID_MAX + 32] = "/api/cameras/", id[ROUTE_ID_MAX];
    size_t used = strlen(target);

    memset(target + used, 'x', ROUTE_ID_MAX - 1);
    assert_string_equal(find("GET", target, id), "/api/cameras/{id}");
    memset(target + used, 'x', ROUTE_ID_MAX);
    assert_string_equal(find("GET", target, id), "");
}

static void a_parameter_is_decoded_and_bounded(void **state)
{
    char text[8];

    assert_int_equal(route_parameter("/x?a=1&b=%3B%2f&c", "b", text, sizeof(text)), 2);
    assert_string_equal(text, ";/");
    assert_int_equal(route_parameter("/x?a=1&c", "c", text, sizeof(text)), 0);
    assert_int_equal(route_parameter("/x?aa=1", "a", text, sizeof(text)), 0);
    assert_int_equal(route_parameter("/x", "a", text, sizeof(text)), 0);
    assert_int_equal(route_parameter("/x?a=1234567", "a", text, sizeof(text)), 7);
    assert_int_equal(route_parameter("/x?a=12345678", "a", text, sizeof(text)), -1);
    assert_int_equal(route_parameter("/x?a=%00", "a", text, sizeof(text)), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_finds_its_route_and_its_id),
        cmocka_unit_test(a_slash_in_an_id_is_one_that_is_encoded),
        cmocka_unit_test(a_head_is_a_get),
        cmocka_unit_test(another_method_is_told_those_that_there_are),
        cmocka_unit_test(what_is_no_path_of_the_table_is_not_found),
        cmocka_unit_test(an_id_that_is_too_long_is_not_found),
        cmocka_unit_test(a_parameter_is_decoded_and_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
