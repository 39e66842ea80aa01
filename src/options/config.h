/* The configuration file: YAML, one mapping, its keys the names of options.
 *
 *   node: a
 *   listen: 10.0.0.1:7000
 *   peer:
 *     - b=10.0.0.2:7000
 *     - c=10.0.0.3:7000
 *   preset: lan
 *
 * One file serves all commands: a key that another command knows is passed over, one that no
 * command knows is refused, and so are a key given twice, a mapping inside the mapping, anchors,
 * aliases, tags, a second document and a file larger than CONFIG_BYTES_MAX. The parser is
 * libfyaml's, fed event by event, so that refused nesting is refused at its first bracket.
 */
#ifndef OPTIONS_CONFIG_H
#define OPTIONS_CONFIG_H

#include "options/option.h"

enum { CONFIG_BYTES_MAX = 256 * 1024 };

struct config_rules {
    const char *option; /* that names the file, such as "config"; no file has it as a key */
    /* Whether any command has the option `name`. NULL: there is no other than the one at hand. */
    bool (*is_known)(const char *name);
};

/* Takes the text's values into `options` as OPTION_CONFIG. `name` is for messages.
 * BATON_EINVAL names the line; BATON_ENOMEM. */
int config_take_text(struct options *options, const char *name, const char *text, size_t bytes,
                     const struct config_rules *rules, struct baton_error *reterr);

/* The same from a file; BATON_EINVAL also if it cannot be read. */
int config_take_file(struct options *options, const char *path, const struct config_rules *rules,
                     struct baton_error *reterr);

#endif
