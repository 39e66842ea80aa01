/* Options: one table describes them, and everything else is derived from it.
 *
 *                 ┌──▶ command line     --election-timeout 75ms-150ms
 *                 ├──▶ environment      BATON_ELECTION_TIMEOUT=75ms-150ms
 *   the table ────┼──▶ configuration    election-timeout: 75ms-150ms
 *                 ├──▶ --help, man pages, shell completions
 *                 └──▶ the provider     (provider_key: passed on unchanged)
 *
 * If an option is given more than once, the command line beats the environment, which beats the
 * configuration file, which beats the default. A list is replaced whole, never mixed. A value is
 * checked when it is taken, from every source, so that reading it cannot fail.
 */
#ifndef OPTIONS_OPTION_H
#define OPTIONS_OPTION_H

#include "base/clock.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_type {
    OPTION_FLAG,     /* on the command line without a value; elsewhere yes or no */
    OPTION_TEXT,     /* at most OPTION_TEXT_MAX bytes, no control characters */
    OPTION_NUMBER,   /* min to max */
    OPTION_DURATION, /* 15ms, 5s */
    OPTION_RANGE,    /* 150ms-300ms */
    OPTION_CHOICE,   /* one of choices */
    OPTION_ADDRESS,  /* HOST:PORT */
    OPTION_LIST,     /* repeated; in the environment separated by spaces */
};

enum { OPTION_TEXT_MAX = 4096, OPTION_LIST_MAX = 1024, OPTION_NAME_MAX = 32 };

struct option_spec {
    const char *name; /* long, without the dashes */
    char letter;      /* or 0 */
    enum option_type type;
    const char *value;        /* the value's name in --help; NULL for a flag */
    const char *initial;      /* default as text; NULL: none */
    const char *choices;      /* "a|b" */
    int64_t min, max;         /* of a number; of a duration in ms, 0: no max */
    const char *provider_key; /* the provider's setting that it sets; NULL: none */
    const char *help;         /* one sentence, without the full stop */
    bool is_secret;           /* a URL that may have a password in it */
    bool hides_path;          /* with is_secret: a token may be anywhere behind its host */
    bool is_flag_only; /* in the environment and the file the name means another command's option */
    bool is_hidden;    /* for tests and measurements: not in --help and the man pages */
};

/* Options that belong together, ending with a nameless one. */
struct option_group {
    const char *title;
    const struct option_spec *specs;
};

enum option_source { OPTION_DEFAULT, OPTION_CONFIG, OPTION_ENVIRONMENT, OPTION_FLAGS };

struct options; /* opaque: the values of one command's options */

/* Groups end with NULL and outlive the result; NULL when out of memory. */
struct options *options_new(const struct option_group *const *groups);
/* The same options, none of them given. */
struct options *options_like(const struct options *options);
void options_free(struct options *options); /* NULL allowed */

/* Takes one value for `name` as spelt in the table. A source replaces a lower one, is ignored under
 * a higher one, and adds to itself if the option is a list. BATON_EINVAL (also for a password that
 * was overwritten with stars, if it would be used), BATON_ENOENT: no such option, BATON_ENOMEM. */
int options_take(struct options *options, enum option_source source, const char *name,
                 const char *value, struct baton_error *reterr);

/* Takes the flags at the start of argv (argv[0] is skipped), up to the first argument that is no
 * flag or a "--". *ret_used is the number of arguments used, with argv[0] and the "--". Passwords
 * are overwritten in argv, which all users of the machine can read. */
int options_take_flags(struct options *options, int argc, char **argv, int *ret_used,
                       struct baton_error *reterr);

/* Takes BATON_… variables that name options of the table. An empty variable counts as not set.
 * Passwords are overwritten in the environment, which child processes inherit. */
int options_take_environment(struct options *options, struct baton_error *reterr);

/* The first option that has a password from this source; NULL: none has. */
const char *options_secret_from(const struct options *options, enum option_source source);

/* By its place in the table; NULL: there are no more. */
const struct option_spec *options_spec(const struct options *options, size_t number);
const struct option_spec *options_find(const struct options *options, const char *name);

/* BATON_ELECTION_TIMEOUT for election-timeout. */
void option_variable(const struct option_spec *spec, char ret[static OPTION_NAME_MAX + 8]);

/* Reading: the option must be in the table and of that type, which is asserted. */
bool options_is_set(const struct options *options, const char *name); /* by more than a default */
bool options_flag(const struct options *options, const char *name);
const char *options_text(const struct options *options, const char *name); /* NULL: not given */
int64_t options_number(const struct options *options, const char *name);
span options_duration(const struct options *options, const char *name);
void options_range(const struct options *options, const char *name, span *ret_min, span *ret_max);
size_t options_count(const struct options *options, const char *name);
const char *options_item(const struct options *options, const char *name, size_t index);
/* All items; ends with NULL. NULL: there are none. Borrowed until the option is taken again. */
const char *const *options_list(const struct options *options, const char *name);
enum option_source options_source(const struct options *options, const char *name);
/* Whether both, of the same table, give the option the same value, as text. */
bool options_agree(const struct options *left, const struct options *right, const char *name);

/* The values that were given, by more than a default, in the table's order; of a list each item by
 * itself. The cursor begins as {0}; false: there are no more. All values are text, as given. */
struct option_cursor {
    size_t option, item; /* the next */
    const struct option_spec *spec;
    const char *text;
};
bool options_next(const struct options *options, struct option_cursor *cursor);

#endif
