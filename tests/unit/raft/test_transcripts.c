/* Conversations of a few cores, kept as text files that read as documentation: see transcript.h.
 *
 *   unit_raft_transcripts FILE…            plays each, and fails where something else comes out
 *   unit_raft_transcripts --rewrite FILE…  writes what comes out now; review the difference
 */
#include "transcript.h"

#include <stdlib.h>
#include <string.h>

static bool rewrites;

static char *contents(const char *path)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *copy = open_memstream(&text, &bytes);
    FILE *file = fopen(path, "re");

    assert_non_null(copy);
    if (!file) {
        fail_msg("%s: cannot be read", path);
        return NULL;
    }
    for (int c = fgetc(file); c != EOF; c = fgetc(file)) {
        (void)fputc(c, copy);
    }
    (void)fclose(file);
    (void)fclose(copy);
    return text;
}

static void write_to(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Fails with the first line that differs. */
static void compare(const char *path, const char *expected, const char *text)
{
    size_t line = 1;
    size_t begin = 0;

    for (size_t i = 0; expected[i] == text[i]; i++) {
        if (expected[i] == '\0') {
            return;
        }
        if (expected[i] == '\n') {
            begin = i + 1;
            line++;
        }
    }
    fail_msg("%s:%zu: the transcript says\n%.*s\nand now came\n%.*s\nIf that is meant, run "
             "unit_raft_transcripts --rewrite with this file and review the difference.",
             path, line, (int)strcspn(expected + begin, "\n"), expected + begin,
             (int)strcspn(text + begin, "\n"), text + begin);
}

static void says_what_the_transcript_says(void **state)
{
    const char *path = *state;
    char *expected = contents(path);
    char *text = NULL;
    size_t bytes = 0;
    FILE *script = fmemopen(expected, strlen(expected), "r");
    FILE *out = open_memstream(&text, &bytes);

    assert_non_null(script);
    assert_non_null(out);
    transcript_play(path, script, out);
    (void)fclose(script);
    (void)fclose(out);
    if (rewrites) {
        write_to(path, text);
    } else {
        compare(path, expected, text);
    }
    free(expected);
    free(text);
}

int main(int argc, char **argv)
{
    int failed = 0;

    rewrites = argc > 1 && strcmp(argv[1], "--rewrite") == 0;
    if (argc < (rewrites ? 3 : 2)) {
        (void)fputs("usage: unit_raft_transcripts [--rewrite] FILE...\n", stderr);
        return 2;
    }
    for (int i = rewrites ? 2 : 1; i < argc; i++) {
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_prestate(says_what_the_transcript_says, argv[i])};
        failed += cmocka_run_group_tests_name(argv[i], tests, NULL, NULL);
    }
    return failed > 0;
}
