/* The program `baton`: finds the command, gathers its options, and calls it. */
#include "cli/command.h"
#include "cli/help.h"
#include "cli/init.h"
#include "options/config.h"
#include "options/program.h"
#include "options/url_secret.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

enum { ARGUMENTS_MAX = 4, LARGE_BYTES = 128 * 1024 };

/* Flags may stand among the first arguments of a command ("bench failover --rounds 5"), never among
 * those of CMD. Those arguments are moved to just before the rest: argv[*ret_used] is the first. */
static int take_arguments(const struct command *command, struct options *options, int argc,
                          char **argv, int *ret_used, struct baton_error *reterr)
{
    char *arguments[ARGUMENTS_MAX];
    int count = 0;
    int at = 0;
    for (;;) {
        int used = 0;
        int code = options_take_flags(options, argc - at, argv + at, &used, reterr);
        if (code) {
            return code;
        }
        at += used;
        bool is_ended = used > 1 && strcmp(argv[at - 1], "--") == 0;
        if (is_ended || at >= argc || count == command->interspersed || count == ARGUMENTS_MAX) {
            break;
        }
        arguments[count++] = argv[at];
    }
    for (int i = 0; i < count; i++) {
        argv[at - count + i] = arguments[i];
    }
    *ret_used = at - count;
    return 0;
}

static int gather(const struct command *command, struct options *options, int argc, char **argv,
                  int *ret_used, struct baton_error *reterr)
{
    int code = take_arguments(command, options, argc, argv, ret_used, reterr);
    if (code || (code = options_take_environment(options, reterr))) {
        return code;
    }
    command_warn_of_misspelt(command);
    const char *config = options_text(options, "config");
    return config ? config_take_file(options, config, &command_file_rules, reterr) : 0;
}

/* The first of the needed words that was not given: of "NAME [--] CMD [ARG ...]", after one, "CMD".
 */
static const char *missing_word(const struct command *command, int given, int *ret_bytes)
{
    const char *at = command->arguments;

    for (;;) {
        *ret_bytes = (int)strcspn(at, " ");
        if (*at != '[' && given-- == 0) {
            return at;
        }
        at += *ret_bytes;
        at += *at == ' ';
    }
}

static int check_arguments(const struct command *command, int count, char **argv,
                           struct baton_error *reterr)
{
    if (count < command->arguments_min) {
        int bytes;
        const char *word = missing_word(command, count, &bytes);
        return error_set(reterr, BATON_EINVAL, "%.*s is missing", bytes, word);
    }
    if (command->arguments_max >= 0 && count > command->arguments_max) {
        return error_set(reterr, BATON_EINVAL, "'%s': one argument too many",
                         secret_hide_word(argv[command->arguments_max]));
    }
    return 0;
}

static int call(const struct command *command, int argc, char **argv)
{
    struct options *options = options_new(command->groups);
    struct invocation invocation = {.command = command, .options = options};
    struct baton_error error = {0};
    int used = 1;
    if (!options) {
        error_set(&error, BATON_ENOMEM, "out of memory");
        return command_fail(&invocation, &error);
    }
    int code = gather(command, options, argc, argv, &used, &error);
    int result;
    if (!code && options_flag(options, "help")) {
        help_text(stdout, command);
        result = EXIT_OK;
    } else if (code || check_arguments(command, argc - used, argv + used, &error) ||
               (options_find(options, "init") && init_enter(options, &error))) {
        result = command_fail(&invocation, &error);
    } else {
        invocation.argc = argc - used;
        invocation.argv = argv + used;
        result = command->main(&invocation);
    }
    options_free(options);
    return result;
}

static int dispatch(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    if (strcmp(word, "--version") == 0) {
        puts("baton " BATON_VERSION_TEXT);
        return EXIT_OK;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        help_text(stdout, NULL);
        return EXIT_OK;
    }
    const struct command *command = command_find(word);
    if (!command) {
        (void)fprintf(stderr,
                      *word ? "baton: '%s': no such command; 'baton --help' lists them\n"
                            : "baton: a command is missing%s; 'baton --help' lists them\n",
                      word);
        return EXIT_USAGE_WRONG;
    }
    return call(command, argc - 1, argv + 1);
}

/* A snapshot of the state is as large as the state, and comes again and again. glibc would soon put
 * it among what is small and lasts, and leave a hole of its size there. */
static void keep_large_memory_apart(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
}

int main(int argc, char **argv)
{
    program_begin();
    keep_large_memory_apart();
    return program_end("baton", dispatch(argc, argv));
}
