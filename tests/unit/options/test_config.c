#include "options/config.h"

#include "cli/groups.h"
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

static const struct option_group *const groups[] = {&group_election, &group_peers, &group_timing,
                                                    NULL};

static bool is_known(const char *name)
{
    return strcmp(name, "rounds") == 0 || strcmp(name, "node") == 0 || strcmp(name, "peer") == 0 ||
           strcmp(name, "lease") == 0 || strcmp(name, "insecure") == 0;
}

static const struct config_rules rules = {.option = "config", .is_known = is_known};

static int load(struct options *options, const char *text, struct baton_error *error)
{
    return config_take_text(options, "baton.yaml", text, strlen(text), &rules, error);
}

static void a_mapping_of_names_to_values_is_taken(void **state)
{
    struct options *options = options_new(groups);
    struct baton_error error;
    assert_int_equal(load(options,
                          "# a comment\nnode: a\npeer:\n  - b=h:1\n  - \"c=h:2\"\n"
                          "lease: 5s\ninsecure: yes\nrounds: 7\n",
                          &error),
                     0);
    assert_string_equal(options_text(options, "node"), "a");
    assert_int_equal(options_count(options, "peer"), 2);
    assert_int_equal(options_duration(options, "lease").ns, SPAN_S(5).ns);
    assert_true(options_flag(options, "insecure"));
    options_free(options);
}

static void an_empty_file_says_nothing(void **state)
{
    struct options *options = options_new(groups);
    struct baton_error error;
    assert_int_equal(load(options, "", &error), 0);
    assert_int_equal(load(options, "# nothing\n", &error), 0);
    options_free(options);
}

static void what_is_wrong_is_refused_with_its_line(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } bad[] = {
        {"node: a\nwight: 3\n", "wight"},
        {"node: a\nnode: b\n", "line 2"},
        {"lease: soon\n", "soon"},
        {"node: [a, b]\n", "line 1: node: takes one value, not a list"},
        {"node: [::1]:7400\n", "line 1: node: brackets begin a list in YAML; quote"},
        {"node: {x: 1}\n", "line 1: node: nested too deep"},
        {"peer: [[b]]\n", "nested too deep"},
        {"- node\n", "nested too deep"},
        {"node\n", "mapping"},
        {"node: &x a\n", "node: anchors"},
        {"node: !!str a\n", "tags"},
        {"node: a\n---\nnode: b\n", "second document"},
        {"node: \"a\n", "YAML"},
        {"# first\nnode: a\npeer: agent:\n", "from line 3 on, key 'peer': not valid YAML"},
        {"node: memory:\n", "ends with ':' or has ': ' in it needs quotes"},
        {"node: *x\n", ""},
        {"%YAML 1.2\n---\nnode: a\n", "directives"},
        {"%~\xff\xff:\xa5 !-", "UTF-8"},
        {"node: a\x01\n", "control character"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct options *options = options_new(groups);
        struct baton_error error;
        assert_int_equal(load(options, bad[i].text, &error), BATON_EINVAL);
        assert_non_null(strstr(error.message, bad[i].says));
        assert_non_null(strstr(error.message, "baton.yaml"));
        options_free(options);
    }
}

static void a_hundred_thousand_brackets_are_refused(void **state)
{
    enum { BRACKETS = 100000 };
    struct options *options = options_new(groups);
    struct baton_error error;
    char *text = malloc(BRACKETS + 1);
    assert_non_null(text);
    memset(text, '[', BRACKETS);
    text[BRACKETS] = '\0';
    assert_int_equal(load(options, text, &error), BATON_EINVAL);
    free(text);
    options_free(options);
}

static void a_file_too_large_or_absent_is_refused(void **state)
{
    struct options *options = options_new(groups);
    struct baton_error error;
    char *text = calloc(1, CONFIG_BYTES_MAX + 1);
    assert_int_equal(config_take_text(options, "big", text, CONFIG_BYTES_MAX + 1, &rules, &error),
                     BATON_EINVAL);
    assert_int_equal(config_take_file(options, "/nonexistent/baton.yaml", &rules, &error),
                     BATON_EINVAL);
    assert_non_null(strstr(error.message, "/nonexistent/baton.yaml"));
    assert_int_equal(config_take_file(options, "/", &rules, &error), BATON_EINVAL);
    free(text);
    options_free(options);
}

static void a_program_names_its_file_by_an_option_of_its_own(void **state)
{
    static const struct config_rules own = {.option = "node"};
    static const char other[] = "rounds: 7\n", itself[] = "node: a\n", fine[] = "lease: 5s\n";
    struct options *options = options_new(groups);
    struct baton_error error;
    assert_int_equal(config_take_text(options, "f", itself, strlen(itself), &own, &error),
                     BATON_EINVAL);
    assert_non_null(strstr(error.message, "does not name another one"));
    assert_int_equal(config_take_text(options, "f", other, strlen(other), &own, &error),
                     BATON_EINVAL);
    assert_non_null(strstr(error.message, "no such key"));
    assert_int_equal(config_take_text(options, "f", fine, strlen(fine), &own, &error), 0);
    assert_int_equal(config_take_file(options, "/nonexistent", &own, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "--node /nonexistent"));
    options_free(options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mapping_of_names_to_values_is_taken),
        cmocka_unit_test(an_empty_file_says_nothing),
        cmocka_unit_test(what_is_wrong_is_refused_with_its_line),
        cmocka_unit_test(a_hundred_thousand_brackets_are_refused),
        cmocka_unit_test(a_file_too_large_or_absent_is_refused),
        cmocka_unit_test(a_program_names_its_file_by_an_option_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
