#include "options/program.h"

#include "base/bearer.h"
#include "base/json_load.h"
#include "base/log.h"
#include "base/version.h"
#include "options/config.h"
#include "options/describe.h"
#include "options/exit_code.h"
#include "options/misspelt.h"
#include "options/pages.h"
#include "options/url_secret.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- Reading --------------------------------------------------------------------------------- */

static void warn_of_misspelt(const struct program_about *about)
{
    for (char **entry = environ; *entry; entry++) {
        struct misspelt misspelt;

        if (misspelt_begin(&misspelt, *entry)) {
            misspelt_compare(&misspelt, about->groups);
            misspelt_warn(&misspelt, about->name);
        }
    }
}

int program_take(struct options **ret, const struct program_about *about, int argc, char **argv,
                 struct baton_error *reterr)
{
    const struct config_rules rules = {.option = about->file};
    struct options *options = options_new(about->groups);
    const char *file;
    int used = 0;
    int code;

    if (!options) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    code = options_take_flags(options, argc, argv, &used, reterr);
    if (code == BATON_OK && used < argc) {
        code = error_set(reterr, BATON_EINVAL, "'%s': takes no such word",
                         secret_hide_word(argv[used]));
    }
    code = code ? code : options_take_environment(options, reterr);
    warn_of_misspelt(about);
    file = code ? NULL : options_text(options, about->file);
    if (file) {
        code = config_take_file(options, file, &rules, reterr);
    }
    if (code != BATON_OK) {
        options_free(options);
        return code;
    }
    *ret = options;
    return BATON_OK;
}

struct logger *program_logger(const struct options *options)
{
    int level = log_level_parse(options_text(options, "log-level"));
    enum log_format format = log_format_for(STDERR_FILENO, options_flag(options, "log-json"));
    return logger_new(STDERR_FILENO, format, (enum log_level)level);
}

int program_token(const char **ret, char *space, size_t bytes, const struct options *options,
                  const char *name, struct baton_error *reterr)
{
    const char *path = options_text(options, name);
    int code = path ? bearer_read(space, bytes, path, reterr) : BATON_OK;

    *ret = path ? space : NULL;
    return code ? error_wrap(reterr, "--%s", name) : BATON_OK;
}

/* ---- Help ------------------------------------------------------------------------------------ */

static void print_text(const struct program_about *about)
{
    (void)printf("usage: %s [flags]\n\n", about->name);
    describe_wrapped(stdout, about->text, 0, 0);
    describe_groups(stdout, about->groups);
    (void)printf("\nEach flag may also stand in the environment (--log-level as "
                 "BATON_LOG_LEVEL)\nand in a file (--%s FILE, log-level: info).\n\nExamples:\n%s",
                 about->file, about->examples);
}

/* The part of the manual page that is not written by hand. */
static void print_man(const struct program_about *about)
{
    pages_man_groups(stdout, about->groups);
}

static void print_bash(const struct program_about *about)
{
    (void)printf("# Completion of %s for bash; written by '%s --help --help-format bash'.\n"
                 "complete -o default -W \"",
                 about->name, about->name);
    pages_flags(stdout, about->groups);
    (void)printf("\" %s\n", about->name);
}

static void print_zsh(const struct program_about *about)
{
    (void)printf("#compdef %s\n# Written by '%s --help --help-format zsh'.\ncompadd --",
                 about->name, about->name);
    pages_flags(stdout, about->groups);
    (void)fputs("\n_files\n", stdout);
}

static void print_fish(const struct program_about *about)
{
    (void)printf("# Completion of %s for fish; written by '%s --help --help-format fish'.\n",
                 about->name, about->name);
    pages_fish(stdout, about->name, "", about->groups);
}

static void print_help(const struct program_about *about, const char *format)
{
    static const struct {
        const char *name;
        void (*print)(const struct program_about *about);
    } formats[] = {{"text", print_text},
                   {"man", print_man},
                   {"bash", print_bash},
                   {"zsh", print_zsh},
                   {"fish", print_fish}};

    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (strcmp(format, formats[i].name) == 0) {
            formats[i].print(about);
        }
    }
}

/* ---- Begin and end --------------------------------------------------------------------------- */

static int fail(const struct program_about *about, const struct baton_error *error)
{
    int code = (int)exit_code_of_error(exit_code_local_error(error->code));
    const char *prefix = log_prefix(STDERR_FILENO, LOG_ERROR);

    (void)fprintf(stderr, "%s%s: %s\n", prefix, about->name, error->message);
    if (error->code == BATON_EINVAL) {
        (void)fprintf(stderr, "%s%s: '%s --help' lists the flags and their values\n", prefix,
                      about->name, about->name);
    }
    return code;
}

/* Without the standard descriptors, the next files to be opened would get their numbers, and the
 * log would be written into a socket. These descriptors fail as closed ones do. */
static void hold_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0) {
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

/* A parent that reads its signals from a descriptor has blocked them, and so this process. */
static void unblock_signals(void)
{
    sigset_t none;

    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

void program_begin(void)
{
    hold_standard_descriptors();
    unblock_signals();
    json_load_guard();
}

int program_end(const char *name, int result)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return result;
    }
    (void)fprintf(stderr, "%s: standard output: %s\n", name,
                  errno ? strerror(errno) : "could not be written");
    return result ? result : EXIT_STORAGE;
}

int program_main(const struct program_about *about, int argc, char **argv)
{
    struct options *options = NULL;
    struct baton_error error = {0};
    int code;

    program_begin();
    code = program_take(&options, about, argc, argv, &error);

    if (!code && options_flag(options, "help")) {
        print_help(about, options_text(options, "help-format"));
    } else if (!code && options_flag(options, "version")) {
        (void)printf("%s %s\n", about->name, BATON_VERSION_TEXT);
    } else if (!code) {
        code = about->run(argc, argv, options, &error);
    }
    options_free(options);
    return program_end(about->name, code ? fail(about, &error) : 0);
}
