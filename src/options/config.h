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

/* Whether any command has the option `name`. */
typedef bool (*config_is_known)(const char *name);

/* Takes the text's values into `options` as OPTION_CONFIG. `name` is for messages.
 * BATON_EINVAL names the line; BATON_ETOOBIG; BATON_ENOMEM. */
int config_take_text(struct options *options, const char *name, const char *text, size_t bytes,
                     config_is_known is_known, struct baton_error *reterr);

/* The same from a file; also BATON_ENOENT, BATON_EIO. */
int config_take_file(struct options *options, const char *path, config_is_known is_known,
                     struct baton_error *reterr);

#endif
