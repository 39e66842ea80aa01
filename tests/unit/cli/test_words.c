/* The words of a command arrive as they were sent. */
#include "cli/words.h"
#include "cmocka_all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *const none[] = {NULL};

static void both_lists_arrive_empty_words_too(void **state)
{
    char *const arguments[] = {(char *)"sh", (char *)"", (char *)"a b\n", NULL};
    char *const variables[] = {(char *)"A=1", (char *)"GONE", NULL};
    char **read_arguments, **read_variables;
    struct words words;
    assert_int_equal(words_write(&words, arguments, variables), 0);
    assert_int_equal(words_read(&read_arguments, &read_variables, &words), 0);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(read_arguments[i], arguments[i]);
    }
    assert_null(read_arguments[3]);
    assert_string_equal(read_variables[0], "A=1");
    assert_string_equal(read_variables[1], "GONE");
    assert_null(read_variables[2]);
    free(read_arguments);
    free(read_variables);
    close(words.fd);
}

static void a_word_may_be_longer_than_a_datagram(void **state)
{
    enum { BYTES = 1 << 20 };
    char *word = malloc(BYTES + 1);
    char **arguments, **variables;
    struct words words;
    assert_non_null(word);
    memset(word, 'x', BYTES);
    word[BYTES] = '\0';
    assert_int_equal(words_write(&words, (char *const[]){word, NULL}, none), 0);
    assert_int_equal(words_read(&arguments, &variables, &words), 0);
    assert_string_equal(arguments[0], word);
    free(word);
    free(arguments);
    free(variables);
    close(words.fd);
}

static void fewer_words_than_promised_are_refused(void **state)
{
    char *const arguments[] = {(char *)"sh", NULL};
    char **read_arguments, **read_variables;
    struct words words;
    assert_int_equal(words_write(&words, arguments, none), 0);
    words.variables = 1;
    assert_int_equal(words_read(&read_arguments, &read_variables, &words), EBADMSG);
    words.arguments = 2;
    assert_int_equal(words_read(&read_arguments, &read_variables, &words), EBADMSG);
    close(words.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_lists_arrive_empty_words_too),
        cmocka_unit_test(a_word_may_be_longer_than_a_datagram),
        cmocka_unit_test(fewer_words_than_promised_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
