#include "options/option.h"

#include "cli/groups.h"
#include "cmocka_all.h"
#include "options/url_secret.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct option_group *const groups[] = {&group_election, &group_peers, &group_timing,
                                                    &group_general, NULL};

static int take(struct options *options, int argc, const char *const *words, int *used,
                struct baton_error *error)
{
    return options_take_flags(options, argc, (char **)(uintptr_t)words, used, error);
}

#define TAKE(options, used, error, ...)                                                            \
    take((options), (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),                 \
         (const char *[]){__VA_ARGS__, NULL}, (used), (error))

static void flags_end_where_the_command_begins(void **state)
{
    struct options *options = options_new(groups);
    struct baton_error error;
    int used;
    assert_int_equal(TAKE(options, &used, &error, "run", "-n", "a", "--insecure", "sh", "-n"), 0);
    assert_int_equal(used, 4);
    assert_string_equal(options_text(options, "node"), "a");
    assert_true(options_flag(options, "insecure"));
    assert_int_equal(TAKE(options, &used, &error, "run", "--node=b", "--", "--node", "c"), 0);
    assert_int_equal(used, 3);
    assert_string_equal(options_text(options, "node"), "b");
    options_free(options);
}

static void a_wrong_flag_is_named(void **state)
{
    struct options *options = options_new(groups);
    struct baton_error error;
    int used;
    assert_int_equal(TAKE(options, &used, &error, "run", "--wight", "3"), BATON_EINVAL);
    assert_string_equal(error.message, "--wight: no such flag, or a value where none belongs; did "
                                       "you mean \"weight\"?");
    assert_int_equal(TAKE(options, &used, &error, "run", "--insecure=yes"), BATON_EINVAL);
    assert_null(strstr(error.message, "did you mean"));
    assert_int_equal(TAKE(options, &used, &error, "run", "--weight"), BATON_EINVAL);
    assert_non_null(strstr(error.message, "--weight"));
    assert_int_equal(TAKE(options, &used, &error, "run", "--weight", "much"), BATON_EINVAL);
    assert_non_null(strstr(error.message, "--weight"));
    assert_non_null(strstr(error.message, "much"));
    options_free(options);
}

static void two_agree_on_a_value_whichever_way_it_was_given(void **state)
{
    struct options *left = options_new(groups);
    struct options *right = options_new(groups);
    struct baton_error error;
    int used;
    assert_int_equal(TAKE(left, &used, &error, "run", "-n", "a", "--insecure", "--peer",
                          "b=127.0.0.1:1", "--peer", "c=127.0.0.1:2"),
                     0);
    assert_int_equal(TAKE(right, &used, &error, "run", "--peer", "b=127.0.0.1:1"), 0);
    assert_false(options_agree(left, right, "node"));
    assert_false(options_agree(left, right, "insecure"));
    assert_false(options_agree(left, right, "peer"));
    assert_true(options_agree(left, right, "weight"));
    assert_int_equal(options_take(right, OPTION_CONFIG, "node", "a", &error), 0);
    assert_int_equal(options_take(right, OPTION_CONFIG, "insecure", "yes", &error), 0);
    assert_int_equal(options_take(right, OPTION_FLAGS, "peer", "c=127.0.0.1:2", &error), 0);
    assert_true(options_agree(left, right, "node"));
    assert_true(options_agree(left, right, "insecure"));
    assert_true(options_agree(left, right, "peer"));
    options_free(left);
    options_free(right);
}

/* A line's end behind the URL in a file of secrets is the likeliest. */
static void what_was_given_comes_as_it_was_given_and_a_list_item_by_item(void **state)
{
    struct options *options = options_new(groups);
    struct option_cursor given = {0};
    struct baton_error error;
    char all[128] = "";
    int used;
    assert_int_equal(TAKE(options, &used, &error, "run", "--insecure", "-p", "b=h:1", "-p", "c=h:2",
                          "--heartbeat-interval", "50ms"),
                     0);
    while (options_next(options, &given)) {
        size_t length = strlen(all);
        (void)snprintf(all + length, sizeof(all) - length, "%s=%s ", given.spec->provider_key,
                       given.text);
    }
    assert_string_equal(all, "peers=b=h:1 peers=c=h:2 insecure=yes heartbeat-interval=50ms ");
    options_free(options);
}

static void a_control_character_is_told_without_the_value(void **state)
{
    struct options *options = options_new(groups);
    struct baton_error error;
    assert_int_equal(options_take(options, OPTION_FLAGS, "node", "geheim\n", &error), BATON_EINVAL);
    assert_null(strstr(error.message, "geheim"));
    assert_non_null(strstr(error.message, "0x0a at byte 7"));
    options_free(options);
}

static void passwords_in_a_url_are_written_over_and_nothing_else(void **state)
{
    static const char *const rows[][2] = {
        {"redis://me:it@h:1/0?lease=3s", "redis://*****@h:1/0?lease=3s"},
        {"redis://:s3/c@r?et@h/0", "redis://**********@h/0"},
        {"redis://h/0?sentinel-password=ab&x=y", "redis://h/0?sentinel-password=**&x=y"},
        {"redis://a@h?password=&sentinel-password=b", "redis://*@h?password=&sentinel-password=*"},
        {"redis://h:1/0?lease=3s", "redis://h:1/0?lease=3s"},
        {"raft://127.0.0.1:1?peers=b%40h", "raft://127.0.0.1:1?peers=b%40h"},
        {"redis://@h", "redis://@h"},
        {"", ""},
    };
    char url[80];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        (void)snprintf(url, sizeof(url), "%s", rows[i][0]);
        assert_int_equal(secret_is_in(url), strcmp(rows[i][0], rows[i][1]) != 0);
        assert_false(secret_is_hidden(url));
        secret_hide(url);
        assert_string_equal(url, rows[i][1]);
        assert_int_equal(secret_is_hidden(url), strcmp(rows[i][0], rows[i][1]) != 0);
    }
}

static void all_behind_the_host_is_written_over_where_a_token_may_be_there(void **state)
{
    static const char *const rows[][2] = {
        {"https://h:1/services/T0/s3cret", "https://h:1*******************"},
        {"https://h?token=a/b", "https://h**********"},
        {"http://h", "http://h"},
        {"s3cret", "******"},
    };
    char url[80];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        (void)snprintf(url, sizeof(url), "%s", rows[i][0]);
        secret_hide_path(url);
        assert_string_equal(url, rows[i][1]);
    }
}

static void a_url_that_was_meant_for_another_option_is_refused_without_its_password(void **state)
{
    const char *const url = "redis://app:geheim@127.0.0.1:6379/0";
    static const char *const names[] = {"preset", "insecure", "lease", "weight"};
    char misspelt[] = "--prvider=redis://app:geheim@127.0.0.1:6379/0";
    struct options *options = options_new(groups);
    struct baton_error error;
    int used;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(options_take(options, OPTION_FLAGS, names[i], url, &error), BATON_EINVAL);
        assert_non_null(strstr(error.message, "redis://**********@127.0.0.1"));
        assert_null(strstr(error.message, "geheim"));
    }
    assert_int_equal(TAKE(options, &used, &error, "run", misspelt), BATON_EINVAL);
    assert_non_null(strstr(error.message, "--prvider=redis://**********@127.0.0.1"));
    options_free(options);
}

static void a_flag_beats_the_environment_and_that_the_file(void **state)
{
    struct options *options = options_new(groups);
    struct baton_error error;
    int used;
    assert_int_equal(setenv("BATON_PRESET", "lan", 1), 0);
    assert_int_equal(options_take(options, OPTION_CONFIG, "preset", "wan", &error), 0);
    assert_string_equal(options_text(options, "preset"), "wan");
    assert_int_equal(options_take_environment(options, &error), 0);
    assert_string_equal(options_text(options, "preset"), "lan");
    assert_int_equal(options_take(options, OPTION_CONFIG, "preset", "wan", &error), 0);
    assert_string_equal(options_text(options, "preset"), "lan");
    assert_int_equal(TAKE(options, &used, &error, "run", "--preset", "fast"), 0);
    assert_int_equal(options_take_environment(options, &error), 0);
    assert_string_equal(options_text(options, "preset"), "fast");
    assert_int_equal(options_source(options, "preset"), OPTION_FLAGS);
    assert_int_equal(unsetenv("BATON_PRESET"), 0);
    options_free(options);
}

static void a_list_is_replaced_whole_by_a_higher_source(void **state)
{
    struct options *options = options_new(groups);
    struct baton_error error;
    int used;
    assert_int_equal(setenv("BATON_PEER", "x=h:1 y=h:2", 1), 0);
    assert_int_equal(options_take_environment(options, &error), 0);
    assert_int_equal(options_count(options, "peer"), 2);
    assert_string_equal(options_item(options, "peer", 1), "y=h:2");
    assert_int_equal(TAKE(options, &used, &error, "run", "-p", "z=h:3"), 0);
    assert_int_equal(options_count(options, "peer"), 1);
    assert_string_equal(options_item(options, "peer", 0), "z=h:3");
    assert_string_equal(options_list(options, "peer")[0], "z=h:3");
    assert_null(options_list(options, "peer")[1]);
    assert_int_equal(unsetenv("BATON_PEER"), 0);
    options_free(options);
}

static void a_password_in_the_environment_is_taken_once(void **state)
{
    struct options *options = options_new(groups);
    struct options *heir = options_new(groups);
    struct baton_error error;
    int used;
    assert_int_equal(setenv("BATON_PROVIDER", "redis://:geheim@h/0", 1), 0);
    assert_int_equal(options_take_environment(options, &error), 0);
    assert_string_equal(options_text(options, "provider"), "redis://:geheim@h/0");
    assert_string_equal(getenv("BATON_PROVIDER"), "redis://*******@h/0");
    assert_int_equal(options_take_environment(heir, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "BATON_PROVIDER"));
    assert_non_null(strstr(error.message, "written over"));
    char flag[] = "--provider=redis://:a@h";
    assert_int_equal(take(heir, 2, (const char *[]){"run", flag, NULL}, &used, &error), 0);
    assert_int_equal(options_take_environment(heir, &error), 0);
    assert_string_equal(options_text(heir, "provider"), "redis://:a@h");
    assert_int_equal(unsetenv("BATON_PROVIDER"), 0);
    options_free(options);
    options_free(heir);
}

static void a_wrong_value_in_the_environment_names_the_variable(void **state)
{
    struct options *options = options_new(groups);
    struct baton_error error;
    assert_int_equal(setenv("BATON_LEASE", "soon", 1), 0);
    assert_int_equal(options_take_environment(options, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "BATON_LEASE"));
    assert_int_equal(unsetenv("BATON_LEASE"), 0);
    options_free(options);
}

static void defaults_are_values_that_their_own_option_accepts(void **state)
{
    static const struct option_group *const all[] = {
        &group_general, &group_election, &group_peers, &group_timing, &group_serve,   &group_client,
        &group_answer,  &group_ask_http, &group_watch, &group_output, &group_run,     &group_once,
        &group_pass,    &group_demo,     &group_bench, &group_help,   &group_measure, NULL};
    struct baton_error error;
    for (size_t i = 0; all[i]; i++) {
        const struct option_group *const one[] = {all[i], NULL};
        struct options *options = options_new(one);
        for (const struct option_spec *spec = all[i]->specs; spec->name; spec++) {
            assert_non_null(spec->help);
            if (spec->initial) {
                assert_int_equal(
                    options_take(options, OPTION_FLAGS, spec->name, spec->initial, &error), 0);
            }
        }
        options_free(options);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_end_where_the_command_begins),
        cmocka_unit_test(a_wrong_flag_is_named),
        cmocka_unit_test(two_agree_on_a_value_whichever_way_it_was_given),
        cmocka_unit_test(what_was_given_comes_as_it_was_given_and_a_list_item_by_item),
        cmocka_unit_test(a_control_character_is_told_without_the_value),
        cmocka_unit_test(passwords_in_a_url_are_written_over_and_nothing_else),
        cmocka_unit_test(all_behind_the_host_is_written_over_where_a_token_may_be_there),
        cmocka_unit_test(a_url_that_was_meant_for_another_option_is_refused_without_its_password),
        cmocka_unit_test(a_password_in_the_environment_is_taken_once),
        cmocka_unit_test(a_flag_beats_the_environment_and_that_the_file),
        cmocka_unit_test(a_list_is_replaced_whole_by_a_higher_source),
        cmocka_unit_test(a_wrong_value_in_the_environment_names_the_variable),
        cmocka_unit_test(defaults_are_values_that_their_own_option_accepts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
