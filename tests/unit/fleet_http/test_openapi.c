/* The table of routes and openapi.json say the same. */
#include "fleet/http/openapi.h"
#include "fleet/http/routes.h"

#include "cmocka_all.h"

#include <ctype.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static int setup(void **state)
{
    *state = json_loadb((const char *)openapi_text, openapi_bytes, JSON_REJECT_DUPLICATES, NULL);
    return *state == NULL;
}

static int teardown(void **state)
{
    json_decref(*state);
    return 0;
}

/* What the document says of a route; NULL: nothing. */
static json_t *described(const json_t *document, const struct route *route)
{
    json_t *path = json_object_get(json_object_get(document, "paths"), route->pattern);
    char method[16] = "";

    for (size_t i = 0; route->method[i] != '\0'; i++) {
        method[i] = (char)tolower((unsigned char)route->method[i]);
    }
    return json_object_get(path, method);
}

static void every_route_is_described(void **state)
{
    for (const struct route *route = fleet_routes; route->method != NULL; route++) {
        if (described(*state, route) == NULL) {
            fail_msg("%s %s is not described", route->method, route->pattern);
        }
    }
}

static void everything_that_is_described_has_a_route(void **state)
{
    const char *path, *method;
    json_t *operations, *operation;

    json_object_foreach(json_object_get(*state, "paths"), path, operations)
    {
        json_object_foreach(operations, method, operation)
        {
            const struct route *route = fleet_routes;

            while (route->method != NULL &&
                   (strcmp(route->pattern, path) != 0 || strcasecmp(route->method, method) != 0)) {
                route++;
            }
            if (route->method == NULL) {
                fail_msg("%s %s has no route", method, path);
            }
        }
    }
}

/* No security: anybody; the read token or the change token; the change token alone. */
static void the_rights_are_described(void **state)
{
    for (const struct route *route = fleet_routes; route->method != NULL; route++) {
        const json_t *security = json_object_get(described(*state, route), "security");
        size_t wanted = route->right == RIGHT_NONE ? 0 : route->right == RIGHT_READ ? 2 : 1;

        if (!json_is_array(security) || json_array_size(security) != wanted ||
            (wanted == 1 && json_object_get(json_array_get(security, 0), "change") == NULL)) {
            fail_msg("%s %s has another right", route->method, route->pattern);
        }
    }
}

/* A cordon and its like may have a body, which has no meaning. */
static void a_body_is_described_where_one_is_read(void **state)
{
    for (const struct route *route = fleet_routes; route->method != NULL; route++) {
        bool has_body = json_object_get(described(*state, route), "requestBody") != NULL;

        if (has_body && route->body_max == 0) {
            fail_msg("%s %s reads no body", route->method, route->pattern);
        }
        if (!has_body &&
            (strcmp(route->method, "PUT") == 0 || strcmp(route->method, "PATCH") == 0)) {
            fail_msg("%s %s reads a body", route->method, route->pattern);
        }
    }
}

static void an_id_is_described_as_a_parameter(void **state)
{
    for (const struct route *route = fleet_routes; route->method != NULL; route++) {
        const json_t *parameters = json_object_get(described(*state, route), "parameters");
        bool has_id = false;
        json_t *parameter;
        size_t index;

        json_array_foreach(parameters, index, parameter)
        {
            has_id =
                has_id || strcmp(json_string_value(json_object_get(parameter, "in")), "path") == 0;
        }
        if (has_id != (strstr(route->pattern, "{id}") != NULL)) {
            fail_msg("%s %s: is its id described?", route->method, route->pattern);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_route_is_described),
        cmocka_unit_test(everything_that_is_described_has_a_route),
        cmocka_unit_test(the_rights_are_described),
        cmocka_unit_test(a_body_is_described_where_one_is_read),
        cmocka_unit_test(an_id_is_described_as_a_parameter),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
