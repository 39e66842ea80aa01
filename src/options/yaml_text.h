/* Texts that libfyaml must not get. Pure.
 *
 * It may never return from a line of directives ("%") that is not UTF-8, and it reads past the end
 * when it shows an error on a line with tabs; fuzzing found both. Neither belongs in a file that a
 * person writes.
 */
#ifndef OPTIONS_YAML_TEXT_H
#define OPTIONS_YAML_TEXT_H

#include <stddef.h>

/* What is wrong with the text, and *ret_line, from 1; NULL: nothing. Static. */
const char *yaml_text_fault(const char *text, size_t bytes, int *ret_line);

#endif
