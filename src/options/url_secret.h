/* Passwords within a URL that a program was given: where they are, so that nobody else sees them.
 *
 *     redis://USER:PASSWORD@HOST/0?sentinel-password=PASSWORD&lease=30s
 *             ^^^^^^^^^^^^^                          ^^^^^^^^
 */
#ifndef OPTIONS_URL_SECRET_H
#define OPTIONS_URL_SECRET_H

#include <stdbool.h>

bool secret_is_in(const char *url);
/* Writes stars over them, in place. */
void secret_hide(char *url);
/* Whether that was done to it. */
bool secret_is_hidden(const char *url);

#endif
